// Sets the theme before the first paint: by the address, else as chosen last, else as the system.
"use strict";
(() => {
  const asked = new URLSearchParams(location.search).get("theme");
  let kept = null;
  try { kept = localStorage.getItem("arc-theme"); } catch { kept = null; }
  const theme = asked ?? kept;
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
})();
