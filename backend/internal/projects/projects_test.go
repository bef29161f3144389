package projects_test

import (
	"html"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/service-dev/service/backend/internal/projects"
)

func TestCheckID(t *testing.T) {
	for id, ok := range map[string]bool{
		"com.example.app":                       true,
		"dev.Some_One.my-app2":                  true,
		"app.local.k3v9x2m4q7":                  true,
		"a.b":                                   true,
		"a." + strings.Repeat("b", 153):         true,
		"a." + strings.Repeat("b", 154):         false,
		"":                                      false,
		"app":                                   false,
		".com.example":                          false,
		"com.example.":                          false,
		"com..example":                          false,
		"-com.example":                          false,
		"com.exa mple":                          false,
		"com.example/../x":                      false,
		"com.bücher.app":                        false,
		"com.example.app\n":                     false,
		"<script>alert(1)</script>.example.app": false,
	} {
		if err := projects.CheckID(id); (err == nil) != ok {
			t.Errorf("CheckID(%q) = %v, want ok %v", id, err, ok)
		}
	}
}

func TestDefaultName(t *testing.T) {
	for id, name := range map[string]string{
		"com.example.hello":       "Hello",
		"com.example.hello-world": "Hello world",
		"com.example.My_App2":     "My App2",
		"com.example.app":         "Example app",
		"com.example.notes.ios":   "Notes ios",
		"app.local.k3v9x2m4q7":    "K3v9x2m4q7",
		"a.b":                     "B",
		"com.example.--":          "com.example.--",
		"com.example.-x":          "X",
	} {
		if got := projects.DefaultName(id); got != name {
			t.Errorf("DefaultName(%q) = %q, want %q", id, got, name)
		}
	}
}

// FuzzCheckID checks that an accepted ID needs no escaping in paths and pages, and has a display name.
func FuzzCheckID(f *testing.F) {
	for _, id := range []string{"com.example.app", "a.b", "a..b", "a.b\n", "a.-", "com.bücher.app", "a.b/../c", "_.a"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if projects.CheckID(id) != nil {
			return
		}
		if len(id) > projects.MaxID || url.PathEscape(id) != id || html.EscapeString(id) != id || strings.Contains(id, "..") {
			t.Errorf("CheckID accepted %q", id)
		}
		if name := projects.DefaultName(id); name == "" || !utf8.ValidString(name) {
			t.Errorf("DefaultName(%q) = %q, want valid UTF-8 that is not empty", id, name)
		}
	})
}
