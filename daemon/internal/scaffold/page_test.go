package scaffold

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestConnectionPage follows the page of a module from its creation to its removal.
func TestConnectionPage(t *testing.T) {
	t.Parallel()
	root, keys := t.TempDir(), &minter{}
	file := filepath.Join(root, "service", PageName)
	html, fault := "<!doctype html>1", error(nil)
	var asked []string
	generate := func(change func(*Order)) Written {
		t.Helper()
		o := order(root)
		o.Page = func(_ context.Context, project string) ([]byte, error) {
			asked = append(asked, project)
			if len(keys.projects) == 0 {
				t.Error("the page of a project without a key was requested")
			}
			return []byte(html), fault
		}
		if change != nil {
			change(&o)
		}
		w, err := Write(context.Background(), o, keys.mint)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	state := func(w Written) string {
		for _, f := range w.Files {
			if f.Path == "service/"+PageName {
				return f.State
			}
		}
		return ""
	}
	findings := func() []string {
		t.Helper()
		in, err := Inspect(t.Context(), ours, root)
		if err != nil {
			t.Fatal(err)
		}
		_, all := Validate(in)
		var list []string
		for _, f := range all {
			if strings.HasPrefix(f.Code, "connection_page") {
				list = append(list, f.Severity+" "+f.Code)
			}
		}
		return list
	}
	is := func(want string) {
		t.Helper()
		if data, err := os.ReadFile(file); err != nil || string(data) != want {
			t.Errorf("the page is %q, want %q (error %v)", data, want, err)
		}
	}

	if w := generate(nil); state(w) != "created" || w.PageErr != nil || asked[0] != "com.example.app" {
		t.Errorf("got %+v, requested pages %v; want one created for com.example.app", w, asked)
	}
	is(html)
	if w := generate(nil); state(w) != "unchanged" || len(findings()) != 0 {
		t.Errorf("%+v, %v", w, findings())
	}
	html = "<!doctype html>2" // the page's settings were changed
	if w := generate(nil); state(w) != "updated" {
		t.Errorf("%+v", w)
	}
	is(html)
	for _, bad := range []struct {
		html string
		err  error
	}{{html, errors.New("no answer")}, {"", nil}, {strings.Repeat("x", maxRead+1), nil}} {
		was := html
		html, fault = bad.html, bad.err
		if w := generate(nil); w.PageErr == nil || state(w) != "" {
			t.Errorf("%+v", w)
		}
		html, fault = was, nil
		is(html)
	}

	write(t, file, []byte("mine"))
	if w := generate(nil); state(w) != "kept" || !slices.Equal(findings(), []string{"warning " + FindPage}) {
		t.Errorf("%+v, %v", w, findings())
	}
	is("mine")
	if w := generate(func(o *Order) { o.Page = nil }); state(w) != "" ||
		!slices.Equal(findings(), []string{"warning " + FindPage}) {
		t.Errorf("%+v, %v", w, findings())
	}
	if w := generate(func(o *Order) { o.Force = true }); state(w) != "updated" {
		t.Errorf("%+v", w)
	}
	is(html)

	// A module of another language in the same folder shares the page.
	html = "<!doctype html>3"
	if w := generate(func(o *Order) { o.Language = TypeScript }); state(w) != "updated" || len(findings()) != 0 {
		t.Errorf("%+v, %v", w, findings())
	}

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := findings(); !slices.Equal(got, []string{"info " + FindPageMissing}) {
		t.Errorf("%v", got)
	}
	if generate(func(o *Order) { o.Page = nil }); len(findings()) != 0 {
		t.Errorf("findings %v about a page that was not requested", findings())
	}
	if w := generate(nil); state(w) != "created" {
		t.Errorf("%+v", w)
	}

	// A link that leads out of the project, or anything that is not a regular file, stays unchanged.
	if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o755)); err != nil {
		t.Fatal(err)
	}
	if w := generate(nil); state(w) != "kept" {
		t.Errorf("%+v", w)
	}
}

func TestManifestNamesNoOtherPage(t *testing.T) {
	t.Parallel()
	if _, err := parseManifest([]byte(`{"manifest":1,"modules":[],"page":{"name":"../../.bashrc","sha256":"00"}}`)); err == nil {
		t.Error("taken")
	}
}
