// Package web is the backend's HTML face: the pages a person sees in a browser, their forms, cookies and words.
//
// It knows accounts, browser sessions and link requests only through the small interfaces in ports.go, and it must
// not know SQL, the JSON API's shapes or how codes and secrets are stored. Every page works without JavaScript.
//
// The rules that hold for every route, and where they live:
//   - GET and HEAD change nothing: a first visit only sets a cookie (browser.go), and the first look at a connection page
//     gives that page the address that it will have;
//   - POST needs the same origin and a token bound to the browser session (guard.go, csrf.go);
//   - approving or denying also needs proof that this very browser session looked at the code (csrf.go);
//   - what another site embeds is refused before anything is looked up or counted (guard.go);
//   - no page may be framed, stored, or load anything from elsewhere (guard.go).
package web
