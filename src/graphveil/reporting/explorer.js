"use strict";
// Show one point of a front at a time, chosen with a slider or by a click into the chart.
for (const explorer of document.querySelectorAll(".explorer")) {
  const steps = [...explorer.querySelectorAll(".step")];
  const points = [...explorer.querySelectorAll("[data-step]")];
  const [slider, output] = explorer.querySelectorAll("input, output");
  const show = () => {
    const chosen = Number(slider.value) - 1;
    steps.forEach((step, number) => { step.hidden = number !== chosen; });
    points.forEach(point => point.classList.toggle("current", Number(point.dataset.step) === chosen));
    output.textContent = steps[chosen].dataset.text;
    slider.setAttribute("aria-valuetext", steps[chosen].dataset.text);
  };
  slider.addEventListener("input", show);
  for (const point of points) {
    point.addEventListener("click", () => {
      slider.value = Number(point.dataset.step) + 1;
      slider.focus();
      show();
    });
  }
  explorer.classList.add("active");
  explorer.querySelector(".slider").hidden = false;
  show();
}
