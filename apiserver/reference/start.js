// Has the renderer show the description that this server gives. Styles that it makes carry the
// nonce of the page, without which they would not count.
Redoc.init(
  "/v3/api-docs",
  {
    nonce: document.currentScript.nonce,
    generatedSamplesMaxDepth: 3,
    hideDownloadButtons: true,
    sanitize: true,
    theme: { typography: { fontFamily: "sans-serif", headings: { fontFamily: "sans-serif" } } },
  },
  document.getElementById("reference"),
);
