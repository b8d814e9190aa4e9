"use strict";
// Run the proved checker, the text of the element #checker, on a certificate in a worker.
// done(code, words): 0 proved, 1 and 2 refused, 3 a kind that is not covered, 4 no answer here.
const runChecker = (() => {
  const program = document.getElementById("checker").textContent +
    "\nonmessage = (event) => postMessage(globalThis.tightropeCheck(new Uint8Array(event.data)));";
  const place = URL.createObjectURL(new Blob([program], { type: "text/javascript" }));
  let worker = null, clock = 0;
  function stop() {
    clearInterval(clock);
    if (worker) worker.terminate();
    worker = null;
  }
  return (bytes, mostSeconds, progress, done) => {
    const begin = Date.now();
    const end = (code, words) => { stop(); done(code, words); };
    const tick = () => {
      const seconds = Math.round((Date.now() - begin) / 1000);
      if (seconds > mostSeconds) end(4, `The check was stopped after ${mostSeconds} s.`);
      else progress(seconds);
    };
    stop();
    worker = new Worker(place);
    clock = setInterval(tick, 500);
    worker.onmessage = (event) => end(event.data.code, event.data.words);
    worker.onerror = () => end(4, "The checker failed in this browser.");
    worker.postMessage(bytes, [bytes]);
  };
})();
