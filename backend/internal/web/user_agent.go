package web

import "strings"

// The order matters, because most browsers also include the names of other browsers.
var (
	browserNames = []string{
		"edg/", "Edge", "edga/", "Edge", "edgios/", "Edge", "opr/", "Opera", "samsungbrowser/", "Samsung Internet",
		"firefox/", "Firefox", "fxios/", "Firefox", "crios/", "Chrome", "chromium/", "Chromium",
		"headlesschrome/", "Chrome", "chrome/", "Chrome", "safari/", "Safari",
	}
	systemNames = []string{
		"iphone", "iPhone", "ipad", "iPad", "android", "Android", "cros ", "ChromeOS", "windows", "Windows",
		"mac os x", "Mac", "macintosh", "Mac", "linux", "Linux",
	}
)

// deviceName returns the browser and system named in a User-Agent header.
func deviceName(userAgent string) string {
	agent := strings.ToLower(userAgent)
	browser, system := firstName(agent, browserNames), firstName(agent, systemNames)
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser != "":
		return browser
	case system != "":
		return "A browser on " + system
	}
	return "An unknown browser"
}

// firstName returns the name of the first marker that text contains. names alternates between markers and names.
func firstName(text string, names []string) string {
	for i := 0; i < len(names); i += 2 {
		if strings.Contains(text, names[i]) {
			return names[i+1]
		}
	}
	return ""
}
