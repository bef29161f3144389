package pluginhost

import "testing"

// The address is opened in the user's browser, so it must be a page on this computer.
func TestPageURL_IsOfThisComputer(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://127.0.0.1:4711/#TOKEN": "http://127.0.0.1:4711/#TOKEN", "": "", "https://evil.example/": "",
		"http://127.0.0.1.evil.example/": "", "file:///etc/passwd": "", "http://user@127.0.0.1/": "", "://": "",
	} {
		if got := pageURL(address); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}
