package web

import "strings"

// The order matters: most browsers name the ones that they want to be taken for as well.
var (
	browserWords = [][2]string{
		{"edg/", "Edge"}, {"edga/", "Edge"}, {"edgios/", "Edge"}, {"opr/", "Opera"}, {"samsungbrowser/", "Samsung Internet"},
		{"firefox/", "Firefox"}, {"fxios/", "Firefox"}, {"crios/", "Chrome"}, {"chromium/", "Chromium"}, {"headlesschrome/", "Chrome"},
		{"chrome/", "Chrome"}, {"safari/", "Safari"},
	}
	systemWords = [][2]string{
		{"iphone", "iPhone"}, {"ipad", "iPad"}, {"android", "Android"}, {"cros ", "ChromeOS"}, {"windows", "Windows"},
		{"mac os x", "Mac"}, {"macintosh", "Mac"}, {"linux", "Linux"},
	}
)

// deviceOf says in plain words which browser on which system a User-Agent header claims to be.
func deviceOf(userAgent string) string {
	agent := strings.ToLower(userAgent)
	browser, system := wordIn(agent, browserWords), wordIn(agent, systemWords)
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

func wordIn(text string, words [][2]string) string {
	for _, w := range words {
		if strings.Contains(text, w[0]) {
			return w[1]
		}
	}
	return ""
}
