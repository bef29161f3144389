package loopback

import "testing"

func TestHosts(t *testing.T) {
	for host, want := range map[string]struct{ programs, browsers bool }{
		"localhost":                  {true, true},
		"LOCALHOST":                  {true, true},
		"127.0.0.1":                  {true, true},
		"127.9.8.7":                  {true, true},
		"::1":                        {true, true},
		"[::1]":                      {true, true},
		"::ffff:127.0.0.1":           {true, true},
		"localhost.":                 {false, true},
		"service-1a2b.localhost":     {false, true},
		"Service-1A2B.LocalHost.":    {false, true},
		"a.b.localhost":              {false, true},
		"":                           {},
		".":                          {},
		".localhost":                 {},
		"..localhost":                {},
		"localhost..":                {},
		"notlocalhost":               {},
		"localhost.example":          {},
		"service-1a2b.localhost.com": {},
		"127.0.0.1.example":          {},
		"128.0.0.1":                  {},
		"0.0.0.0":                    {},
		"::":                         {},
		"10.0.0.1":                   {},
	} {
		if got := IsHost(host); got != want.programs {
			t.Errorf("IsHost(%q): got %t, want %t", host, got, want.programs)
		}
		if got := IsBrowserHost(host); got != want.browsers {
			t.Errorf("IsBrowserHost(%q): got %t, want %t", host, got, want.browsers)
		}
	}
}
