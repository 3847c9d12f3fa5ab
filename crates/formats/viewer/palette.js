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
    jit: ['#8fd3b6', '#9edbc1', '#82caab'],
    python: ['#f2de79', '#f5e48c', '#ecd668'],
    java: ['#dfa6d8', '#e5b4df', '#d899d0'],
    marker: ['#e3e3e6', '#e3e3e6', '#e3e3e6'],
    other: ['#c9c4b8', '#d1ccc1', '#c1bcaf'],
    group: ['#d5dae2', '#d5dae2', '#d5dae2'],
    text: '#16191d',
    match: '#7d1196',
    matchText: '#ffffff',
    hatch: '#9b9ba3',
  },
  dark: {
    kernel: ['#a35a17', '#ab6220', '#9a5311'],
    native: ['#2d5f94', '#35689d', '#27578a'],
    'native inlined': ['#1f3c5c', '#244364', '#1b3653'],
    jit: ['#1f7556', '#267d5e', '#196c4e'],
    python: ['#7d6a00', '#857208', '#756200'],
    java: ['#85408a', '#8d4992', '#7d3882'],
    marker: ['#3a3d43', '#3a3d43', '#3a3d43'],
    other: ['#5e584b', '#666053', '#565043'],
    group: ['#333a45', '#333a45', '#333a45'],
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
