// Package web serves the backend's HTML pages, forms and cookies.
//
// It uses the services of the other packages (Options in web.go, Dashboard in dashboard_services.go). It contains no
// SQL, does not depend on the JSON API, and is independent of how codes and secrets are stored. Every page except the
// simulator works without JavaScript.
//
// Rules for every route:
//   - GET and HEAD change nothing, except that a first visit sets a cookie (browser.go), that the callback of a
//     sign-in provider signs in (signin_oidc.go), and that the first request for a connection page fixes its URL.
//   - POST requires the same origin and a token bound to the browser session (guard.go, csrf.go).
//   - Approving or denying also requires proof that this browser session was shown the code (csrf.go).
//   - Pages embedded by another site are refused before anything is looked up or counted (guard.go).
//   - No page may be framed or stored, or load anything from another origin (guard.go).
package web
