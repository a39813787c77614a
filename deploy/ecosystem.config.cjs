// PM2: `pm2 start deploy/ecosystem.config.cjs` from the repository's root; settings come from the shell or from PM2's env.
const path = require("node:path");

const root = path.resolve(__dirname, "..");

module.exports = {
  apps: [
    {
      name: "trickbook-worker",
      cwd: root,
      script: path.join(root, ".venv", "bin", "trickbook-worker"),
      args: "run",
      interpreter: "none", // a Python program: PM2 must not hand it to node
      exec_mode: "fork",
      instances: 1, // a second one would only stand by for the lease
      autorestart: true,
      // PM2 kills 1.6 s after SIGINT unless told otherwise; the drain takes up to WORKER_DRAIN_SECONDS (10).
      kill_timeout: 15000,
      exp_backoff_restart_delay: 500, // ms, growing to 15 s
      stop_exit_codes: [78], // a setting is wrong: trying again does not help
      max_memory_restart: "700M",
      merge_logs: true,
      time: false, // every line has its own "ts"
    },
  ],
};
