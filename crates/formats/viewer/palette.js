// Colours, by the kind of code. Checked by the browser test: contrast of the text, and distance of the kinds from
// each other for the common kinds of colour blindness.

/**
 * Fill colours by kind, light and dark. Several shades of a kind tell neighbours apart; a function keeps its shade.
 * `native inlined` and the like fall back to the kind itself.
 */
const PALETTE = {
  light: {
    kernel: ['#f3a55c', '#f0b070', '#ee9c50'],
    native: ['#a9cdf0', '#b7d6f4', '#9cc4ea'],
    'native inlined': ['#dbeafa', '#e4effb', '#d2e4f7'],
    jit: ['#85d0ae', '#95d9ba', '#78c6a3'],
    python: ['#f2de79', '#f5e48c', '#ecd668'],
    java: ['#cd8ac8', '#d497cf', '#c67ec0'],
    marker: ['#dedcd8', '#dedcd8', '#dedcd8'],
    other: ['#b4a68f', '#bcaf99', '#ac9e86'],
    group: ['#c2cad6', '#c2cad6', '#c2cad6'],
    text: '#16191d',
    match: '#7d1196',
    matchText: '#ffffff',
    hatch: '#9b9ba3',
  },
  dark: {
    kernel: ['#a4531a', '#a95820', '#9b4c13'],
    native: ['#30639a', '#386ca3', '#295b90'],
    'native inlined': ['#1f3c5c', '#244364', '#1b3653'],
    jit: ['#1f7455', '#267859', '#196a4c'],
    python: ['#4f4b0b', '#575312', '#474306'],
    java: ['#74286c', '#7c3074', '#6b2164'],
    marker: ['#35342f', '#35342f', '#35342f'],
    other: ['#6b3a34', '#73423b', '#63332d'],
    group: ['#3d4654', '#3d4654', '#3d4654'],
    text: '#f2f4f7',
    match: '#ffd9fb',
    matchText: '#2a0033',
    hatch: '#6f747d',
  },
};

/** Name of a kind in the palette and the legend. */
function paletteName(kind, inlined) {
  return inlined ? `${kind} inlined` : kind;
}

function shades(theme, name) {
  const colours = PALETTE[theme];
  return colours[name] ?? colours[name.replace(/ inlined$/, '')] ?? colours.other;
}
