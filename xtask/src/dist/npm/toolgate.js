#!/usr/bin/env node
// Starts the program in the package of this platform, with the same arguments, streams, signals and exit code.
"use strict";

const { spawn } = require("node:child_process");

const name = `@toolgate/${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/toolgate`);
} catch {
  console.error(
    `toolgate: the package ${name} is not installed. Either npm was told to omit optional dependencies, ` +
      "or there is no program for this platform. Build it with `cargo install toolgate-cli`.",
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
const signals = ["SIGHUP", "SIGINT", "SIGTERM"];
for (const signal of signals) {
  // A terminal sends SIGINT to the program too, for which a second one means to end at once.
  process.on(signal, () => signal === "SIGINT" || child.kill(signal));
}
child.on("error", (error) => {
  console.error(`toolgate: ${program} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const name of signals) process.removeAllListeners(name);
  process.kill(process.pid, signal);
});
