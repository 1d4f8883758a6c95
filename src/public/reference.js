// Draws the reference. Requests go to where the page came from, whatever name the service is reached by.
async function draw() {
  const response = await fetch('/openapi.json')
  const spec = { ...(await response.json()), servers: [{ url: location.origin }] }
  window.SwaggerUIBundle({
    spec,
    dom_id: '#reference',
    presets: [window.SwaggerUIBundle.presets.apis],
    deepLinking: true,
    docExpansion: 'none',
    filter: true,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
    validatorUrl: null,
    // A token that is pasted lives as long as the page.
    persistAuthorization: false,
  })
}

void draw()
