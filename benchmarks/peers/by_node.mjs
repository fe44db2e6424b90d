// graphile-worker and pg-boss with their own workers. Runs with the Node.js of the peers' folder, PEERS_FOLDER.
//
// node by_node.mjs CONTENDER URL install | send PER_CALL COUNT | work SETTING | pace COUNT | offer RATE SECONDS
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(`${process.env.PEERS_FOLDER}/package.json`);
const [name, url, mode, ...numbers] = process.argv.slice(2);
const timing = process.env.PEERS_LATE !== undefined;
const watching = timing || process.env.PEERS_WATCH !== undefined;
const seconds = () => Number(process.hrtime.bigint()) / 1e9; // the clock that Python calls monotonic
const say = (...words) => process.stdout.write(`${words.join(" ")}\n`);
const digits = 10 ** 10; // see tally.py
const micros = (time) => Math.floor(time * 1e6) % digits;
const late = new Map();
const body = (number) => ({ n: String(number).padStart(10, "0") + "abcdefghij".repeat(8) + "x" });

let count = 0;
let first = 0;
let last = 0;
let told = 0;

function add(some) {
  last = seconds();
  first ||= last;
  count += some;
}

function handled(payload) {
  if (timing) {
    const passed = (micros(seconds()) - Number(payload.n.slice(0, 10)) + digits) % digits;
    const step = Math.round(40 * Math.log10(Math.max(passed, 1)));
    late.set(step, (late.get(step) ?? 0) + 1);
  } else if (watching) say("seen", Number(payload.n.slice(0, 10)), seconds());
  add(1);
}

function report() {
  if (late.size) {
    say("late", ...[...late].map((step) => step.join(":")));
    late.clear();
  }
  if (count !== told) say("done", (told = count), first, last);
}

async function ready() {
  say("ready");
  const lines = createInterface({ input: process.stdin });
  await new Promise((go) => lines.once("line", go));
  lines.close();
  setInterval(report, timing ? 200 : 20).unref();
}

// concurrentJobs, localQueue and the delays are from its page on performance; setting: the size of the local queue.
function graphile() {
  const { run, makeWorkerUtils, Logger } = require("graphile-worker");
  const logger = new Logger(() => () => {});
  let utils;
  return {
    async open() {
      utils = await makeWorkerUtils({ connectionString: url, logger });
    },
    async install() {
      await this.open();
      await utils.migrate();
      await utils.release();
    },
    send(bodies) {
      if (bodies.length === 1) return utils.addJob("bench", bodies[0]);
      return utils.addJobs(bodies.map((payload) => ({ identifier: "bench", payload })));
    },
    close: () => utils.release(),
    work(setting) {
      return run({
        taskList: { bench: watching ? handled : () => add(1) },
        noHandleSignals: true,
        preset: {
          worker: {
            connectionString: url,
            logger,
            concurrentJobs: 24,
            maxPoolSize: 20,
            localQueue: { size: setting },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
      });
    },
  };
}

// Batches, bursts while batches are full, and LISTEN/NOTIFY; setting: batchSize.
function pgBoss() {
  const { PgBoss } = require("pg-boss");
  const boss = new PgBoss({ connectionString: url, useListenNotify: mode === "work" });
  boss.on("error", (error) => console.error(error));
  return {
    open: () => boss.start(),
    async install() {
      await boss.start();
      await boss.createQueue("bench", { notify: true });
      await boss.stop();
    },
    send(bodies) {
      if (bodies.length === 1) return boss.send("bench", bodies[0]);
      return boss.insert("bench", bodies.map((data) => ({ data })));
    },
    close: () => boss.stop({ graceful: false }),
    async work(setting) {
      await boss.start();
      const options = { batchSize: setting, burstWhenBatchFull: setting > 1, pollingIntervalSeconds: 0.5 };
      const each = async (jobs) => jobs.forEach((job) => handled(job.data));
      await boss.work("bench", options, watching ? each : async (jobs) => add(jobs.length));
    },
  };
}

const peer = { graphile, "pg-boss": pgBoss }[name]();
if (mode === "install") {
  await peer.install();
  process.exit(0);
} else if (mode === "work") {
  await ready();
  await peer.work(Number(numbers[0]));
} else if (mode === "pace") {
  await peer.open();
  await ready();
  for (let number = 0; number < Number(numbers[0]); number++) {
    await sleep(150 + Math.random() * 200);
    await peer.send([body(number)]);
    say("sent", number, seconds());
  }
  process.exit(0);
} else if (mode === "offer") {
  const [rate, length] = numbers.map(Number);
  await peer.open();
  await ready();
  first = seconds();
  const began = first;
  for (let slot = 0; slot < Math.round(length * 100); slot++) {
    const due = began + slot / 100;
    const wait = due - seconds();
    if (wait > 0) await sleep(wait * 1000);
    const size = Math.floor(((slot + 1) * rate) / 100) - Math.floor((slot * rate) / 100);
    if (size) await peer.send(Array(size).fill(body(micros(due))));
    add(size);
  }
  report();
  process.exit(0);
} else {
  const [perCall, total] = numbers.map(Number);
  const some = Array.from({ length: 1000 }, (_, number) => body(number));
  await peer.open();
  await ready();
  first = seconds();
  for (let start = 0; start < total; start += perCall) {
    await peer.send(some.slice(start % 1000, (start % 1000) + perCall));
  }
  add(total);
  report();
  process.exit(0);
}
