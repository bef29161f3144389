package projects_test

import (
	"strings"
	"testing"

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
