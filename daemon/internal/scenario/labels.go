package scenario

import (
	"fmt"

	"github.com/service-dev/service/glasses/scenario"
)

// labelled adds the user's note to a step that the recorder is about to add. The note describes the step that caused
// this one. In virtual time, both steps begin at the same moment.
func (r *recorder) labelled(s scenario.Step) scenario.Step {
	for i, n := range r.labels {
		if n.label.act != s.Act() || r.virtual && s.Camera == nil && n.at-r.base != r.at {
			continue
		}
		if s.Note == "" {
			s.Note = n.label.text
			r.labels = append(r.labels[:i:i], r.labels[i+1:]...)
		}
		break
	}
	return s
}

// finish removes pictures whose name a later picture also uses. It returns a sentence for each omission.
func (r *recorder) finish() []string {
	left := r.omitted
	later := map[string]bool{}
	for i := len(r.list) - 1; i >= 0; i-- {
		name := r.list[i].Picture
		switch {
		case name == nil:
		case later[*name]:
			r.list = append(r.list[:i:i], r.list[i+1:]...)
			left = append(left, fmt.Sprintf("a picture %q, because a later one has the same name", *name))
		default:
			later[*name] = true
		}
	}
	for _, n := range r.labels {
		left = append(left, fmt.Sprintf("the note %q on a step %s", n.label.text, n.label.act))
	}
	count := map[string]int{}
	for _, what := range left {
		count[what]++
	}
	notes := []string{}
	for _, what := range left {
		switch n := count[what]; {
		case n > 1:
			notes = append(notes, fmt.Sprintf("omitted %d times: %s", n, what))
		case n == 1:
			notes = append(notes, "omitted: "+what)
		}
		delete(count, what)
	}
	return notes
}
