package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/service-dev/service/backend/internal/link"
)

const maxNext = 1024 // bytes

// nextOf is where the person goes after signing in or out: the local path in the query's "next", else "/".
func nextOf(r *http.Request) string { return localPath(r.URL.Query().Get("next")) }

// localPath returns next if it is a path of this site, and "/" for anything else. Browsers read a backslash as a slash
// and drop tabs and line ends, so those are refused rather than interpreted.
func localPath(next string) string {
	if len(next) > maxNext || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") {
		return "/"
	}
	if strings.ContainsFunc(next, func(c rune) bool { return c <= ' ' || c == '\\' || c == 0x7f || c == '#' }) {
		return "/"
	}
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || strings.Contains(u.Path, "//") {
		return "/"
	}
	switch u.Path {
	case "/signin", "/signup", "/signout":
		return "/" // would go round in circles
	}
	return next
}

// withNext adds the way back to a path of ours.
func withNext(path, next string) string {
	if next == "/" {
		return path
	}
	return path + "?next=" + url.QueryEscape(next)
}

// activationCode is the user code if next leads to the activation page, else "".
func activationCode(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Path != "/activate" {
		return ""
	}
	code, _ := link.NormalizeUserCode(u.Query().Get("code"))
	return code
}
