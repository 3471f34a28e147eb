// Loads the addon into this process, and has worker threads load it, those that run and those to come. Returns undefined, or why there is no addon.
((library, pipe) => {
  const addon = { exports: {} };
  process.dlopen(addon, library);
  const failure = addon.exports.start(pipe);
  if (failure !== undefined) return failure;
  const load = '{ const addon = { exports: {} }; process.dlopen(addon, ' + JSON.stringify(library) + '); addon.exports.join(); }';
  const message = JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression: load } });
  const { Session } = require('inspector');
  const session = new Session();
  session.connect();
  session.on('NodeWorker.attachedToWorker', ({ params: { sessionId } }) => {
    session.post('NodeWorker.sendMessageToWorker', { sessionId, message });
  });
  session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  const timer = setInterval(() => {
    if (addon.exports.isOn()) return;
    clearInterval(timer);
    session.post('NodeWorker.disable');
    session.disconnect();
  }, 1000);
  timer.unref();
})
