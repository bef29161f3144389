package web

// isSiteHost reports whether the browser opened the page at the site's own host name. An embedded backend also serves
// localhost, for browsers that do not resolve its name.
func (w *Web) isSiteHost(c *call) bool {
	return !w.Embedded || w.siteHost == "" || c.Host == w.siteHost
}
