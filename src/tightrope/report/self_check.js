"use strict";
// Check the certificate in this page, and say what the checker computed: no verdict is text of the page.
(() => {
  const part = document.getElementById("self-check"), status = part.querySelector("[role=status]");
  const certificate = document.getElementById("certificate").textContent;
  function show(kind, words) {
    status.textContent = words;
    status.className = kind;
    part.querySelector(".elsewhere").hidden = kind !== "open";
  }
  // Whether one of the proved claims implies the headline: its bound, and its confidence.
  function implied(words) {
    const headline = document.querySelector("h1").textContent;
    if (!headline.startsWith("PROVED")) return true;
    const bound = /(>=|<=) (\S+?),?(?: |$)/.exec(headline), sure = /confidence ([0-9.]+)/.exec(headline);
    if (!bound) return false;
    const limit = Number(bound[2].replaceAll(",", ""));
    return [...words.matchAll(/^PROVED: .* in \[(\S+), (\S+)\](?:, with probability 1 - ([^\s,]+))?(?:, if .*)?$/gm)].some(
      ([, lower, upper, delta]) =>
        (bound[1] === ">=" ? Number(lower) >= limit : Number(upper) <= limit) &&
        (!delta || (sure && Number(sure[1]) <= 1 - Number(delta) + 1e-12)));
  }
  function done(code, words) {
    if (code === 3) {
      show("open", `This page did not check its certificate: the proved checker does not cover this kind (${words.trim()}).`);
      return;
    }
    if (code === 4) {
      show("open", `This page did not check its certificate. ${words}`);
      return;
    }
    if (code !== 0) {
      show("failed", `The check of this page's certificate FAILED. ${words.trim()}.`);
      return;
    }
    const lines = words.trim().split("\n"), fact = (name) => lines.find((line) => line.startsWith(`${name}: `)).slice(name.length + 2);
    const claims = lines.filter((line) => line.startsWith("PROVED: ")).join("; ");
    const proof = `by a program whose correctness is proved in Coq (theorem ${fact("theorems")}).`;
    if (fact("digest") !== part.dataset.digest)
      show("failed", `The certificate in this page is NOT the one that the report names. What it proves: ${claims}, ${proof}`);
    else if (!implied(words))
      show("failed", `The headline does NOT follow from the certificate in this page. What it proves: ${claims}, ${proof}`);
    else show("proved", `This page has checked its own certificate: ${claims}, ${proof}`);
  }
  try {
    const bytes = Uint8Array.from(atob(certificate), (character) => character.charCodeAt(0));
    part.querySelector(".save").href = URL.createObjectURL(new Blob([bytes]));
    const progress = (seconds) => show("", `Checking the certificate of this page: ${seconds} s.`);
    progress(0);
    runChecker(bytes.buffer, Number(part.dataset.seconds), progress, done);
  } catch (error) {
    show("failed", `The check of this page's certificate FAILED: ${error.message}.`);
  }
})();
