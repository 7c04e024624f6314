'use strict';
// One of the processes that try things, as the leading one sees it: started when it is needed, ended when it hangs.
const childProcess = require('node:child_process');
const path = require('node:path');

const START = 20000; // Milliseconds for a process to come up.

class Worker {
  constructor(request) {
    this.request = request;
    this.process = null;
    this.spent = 0; // Seconds of CPU of the processes that are gone.
    this.now = 0;
  }

  get cpu() {
    return this.spent + this.now;
  }

  start() {
    const options = { stdio: ['ignore', 'ignore', 'ignore', 'ipc'], execArgv: ['--max-old-space-size=1024'] };
    const script = path.join(__dirname, 'start.cjs');
    this.process = childProcess.fork(script, ['--child'], { ...options, serialization: 'advanced' });
    return this.exchange({ kind: 'setup', request: this.request }, START);
  }

  // The answer to one question; null when the process died or did not answer in time.
  async ask(question, milliseconds) {
    if (!this.process && !(await this.start())) return null;
    const answer = await this.exchange(question, milliseconds);
    if (answer && answer.tired) this.stop();
    return answer;
  }

  exchange(question, milliseconds) {
    const child = this.process;
    const began = Date.now();
    return new Promise((resolve) => {
      const end = (answer) => {
        clearTimeout(timer);
        child.removeAllListeners();
        if (answer) this.now = answer.cpu;
        else {
          this.spent += (Date.now() - began) / 1000;
          this.stop();
        }
        resolve(answer);
      };
      const timer = setTimeout(() => end(null), milliseconds);
      child.on('message', end);
      child.on('exit', () => end(null));
      child.on('error', () => end(null));
      child.send(question, (error) => error && end(null));
    });
  }

  stop() {
    if (this.process) {
      this.process.removeAllListeners();
      this.process.on('error', () => undefined);
      this.process.kill('SIGKILL');
    }
    this.process = null;
    this.spent += this.now;
    this.now = 0;
  }
}

module.exports = { Worker };
