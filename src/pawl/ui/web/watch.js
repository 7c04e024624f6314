// Comes with Pawl and not with the page: says that a page of the user's own came up, or takes it back where it did not.
(() => {
  const { build, seconds } = document.currentScript.dataset;
  const found = /[#&]token=([^&]+)/.exec(location.hash);
  const token = found ? decodeURIComponent(found[1]) : (sessionStorage.getItem("pawl-token") ?? "");
  const say = (what) =>
    fetch(`api/page/${what}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ build }),
      keepalive: what === "left",
    });
  // A tab that is closed before is no page that does not come up.
  const leave = () => say("left");
  addEventListener("pagehide", leave);
  let seen = 0;
  const look = setInterval(() => {
    seen = document.querySelector("#root > *") ? seen + 1 : 0;
    if (seen < 4) return;
    stop();
    say("up");
  }, 250);
  const late = setTimeout(() => {
    stop();
    say("down").then((answer) => answer.ok && location.reload());
  }, Number(seconds) * 1000);
  function stop() {
    clearInterval(look);
    clearTimeout(late);
    removeEventListener("pagehide", leave);
  }
})();
