package web

import (
	"net/url"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/link"
)

const maxNext = 1024 // bytes

// nextOf returns where to continue after signing in or out: the local path in the query's "next", or "/".
func nextOf(c *call) string { return localPath(c.URL.Query().Get("next")) }

// localPath returns next if it is a path of this site to continue to after signing in or out. Otherwise it returns
// "/".
func localPath(next string) string {
	next = sitePath(next)
	u, err := url.Parse(next)
	if err != nil || slices.Contains([]string{"/signin", "/signup", "/signout"}, u.Path) {
		return "/" // this path would redirect in a loop
	}
	return next
}

// sitePath returns next if it is a path of this site, or "/" otherwise. Browsers treat a backslash as a slash and
// drop tabs and line breaks, so sitePath rejects these instead of interpreting them.
func sitePath(next string) string {
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
	return next
}

// landing returns the path at which a signed-in user continues: the dashboard instead of "/", if there is one.
func (w *Web) landing(next string) string {
	if next == "/" && w.Dashboard != nil {
		return "/account"
	}
	return next
}

// withNext adds the path to continue to.
func withNext(path, next string) string {
	if next == "/" {
		return path
	}
	return path + "?next=" + url.QueryEscape(next)
}

// activationCode returns the user code if next leads to the activation page, or "" otherwise.
func activationCode(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Path != "/activate" {
		return ""
	}
	code, _ := link.NormalizeUserCode(u.Query().Get("code"))
	return code
}
