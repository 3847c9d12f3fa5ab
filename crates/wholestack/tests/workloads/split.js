// Three functions below two callers, chosen by lot. Follows the protocol of kit.h.
// To be run with --no-turbo-inlining, so that each function has a frame, and --perf-basic-prof, so that it has a name.
'use strict';
const fs = require('fs');

function leaf60(x, n) { for (let i = 0; i < n; i++) x = (Math.imul(x, 1103515245) + 12345 + i) & 0x7fffffff; return x; }
function leaf30(x, n) { for (let i = 0; i < n; i++) x = (Math.imul(x, 1103515245) + 54321 + i) & 0x7fffffff; return x; }
function leaf10(x, n) { for (let i = 0; i < n; i++) x = (Math.imul(x, 1103515245) + 99999 + i) & 0x7fffffff; return x; }
const leaves = [leaf60, leaf30, leaf10], weights = [6, 3, 1], done = [0, 0, 0];

function inner(which, x, n) { return leaves[which](x, n) ^ n; }
function outer(which, x) {
  const n = weights[which] * 3000;
  done[which] += n;
  return inner(which, x + 1, n) ^ x;
}
function cpu() { const used = process.cpuUsage(); return (used.user + used.system) / 1e6; }
function work(budget) {
  const begun = cpu();
  let x = 1, random = 1;
  while (cpu() - begun < budget) {
    for (let i = 0; i < 50; i++) {
      random = (Math.imul(random, 1103515245) + 12345) & 0x7fffffff;
      x ^= outer((random >> 16) % 3, x);
    }
  }
  return [x, cpu() - begun];
}
const gated = process.env.GATE !== '0', line = Buffer.alloc(64);
fs.writeSync(1, `READY ${process.pid}\n`);
if (gated && fs.readSync(0, line) === 0) process.exit(3);
const [x, used] = work(Number(process.argv[2] || 1));
fs.writeSync(1, JSON.stringify({
  cpu_s: used, truth: { leaf60: done[0], leaf30: done[1], leaf10: done[2] }, sum: x }) + '\n');
if (gated) while (fs.readSync(0, line) > 0) { }
