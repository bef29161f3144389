package control

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The fields of what `servicectl --json` prints are sorted, as they were when it printed maps. The output is read by
// scripts, and compared as text.
func TestPrintedTypesAreSorted(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(of reflect.Type)
	check = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[Status]().PkgPath() || seen[of] {
			return
		}
		seen[of] = true
		var names []string
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
			check(field.Type)
		}
		if !slices.IsSorted(names) {
			t.Errorf("the fields of %s are not sorted: %v", of, names)
		}
	}
	for _, of := range []any{Status{}, Plugins{}, PluginAnswer{}, Tools{}, Fonts{}, FontAnswer{}, Glasses{}, LoggedOut{},
		Decision{}, Telemetry{}, Purged{}, PasswordReset{}} {
		check(reflect.TypeOf(of))
	}
	if len(seen) < 15 {
		t.Errorf("only %d types were checked", len(seen))
	}
}

func TestRoutesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Routes() {
		if key := r.Method + " " + r.Path; seen[key] || r.Does == "" || !strings.HasPrefix(r.Path, "/v1/") {
			t.Errorf("%s is repeated, not explained or not below /v1", key)
		} else {
			seen[key] = true
		}
	}
}
