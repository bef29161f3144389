package web

import "net/http"

// formErrors is what is wrong with a form that came back. Pages embed it; the template "summary" shows it.
type formErrors struct {
	Problem string // about the form as a whole
	Wrong   []wrongField
}

// wrongField is one field's trouble; Field is the id of its input.
type wrongField struct{ Field, Text string }

func (f *formErrors) wrong(field, text string) { f.Wrong = append(f.Wrong, wrongField{field, text}) }

// Failed says whether there is something to mend.
func (f formErrors) Failed() bool { return f.Problem != "" || len(f.Wrong) > 0 }

// Error is the trouble of one field, or empty.
func (f formErrors) Error(field string) string {
	for _, w := range f.Wrong {
		if w.Field == field {
			return w.Text
		}
	}
	return ""
}

// statusOf is the status of a page with a form: 422 where it came back to be mended.
func statusOf(f formErrors) int {
	if f.Failed() {
		return http.StatusUnprocessableEntity
	}
	return http.StatusOK
}

// said is a page that says one thing and names the way on.
type said struct {
	Title string
	Text  []string
	Href  string
	Label string
	Quiet bool // whether the way on is less than the next step
}

func (w *Web) say(rw http.ResponseWriter, r *http.Request, status int, s said) error {
	return w.render(rw, r, status, "said", s)
}

// sayTooMany answers an attempt too many where there is no form to show again.
func (w *Web) sayTooMany(rw http.ResponseWriter, r *http.Request) error {
	rw.Header().Set("Retry-After", "60")
	return w.say(rw, r, http.StatusTooManyRequests, said{
		Title: "Too many attempts", Text: []string{tooMany, "Nothing was changed."}, Href: "/", Label: "Go to the start page", Quiet: true,
	})
}
