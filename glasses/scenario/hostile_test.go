package scenario

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// Reading a file within the size limit must not use a hundred times its size in memory, because the file may come
// from an untrusted project.
func TestParse_ListsOfNothingAreRefusedBeforeTheyAreMade(t *testing.T) {
	for name, file := range map[string][2]string{
		"steps":    {`{"scenario":1,"name":"x","steps":[`, `]}`},
		"a trace":  {`{"scenario":1,"name":"x","steps":[],"recorded":{"trace":[`, `]}}`},
		"pictures": {`{"scenario":1,"name":"x","steps":[],"recorded":{"pictures":[`, `]}}`},
	} {
		for _, item := range []string{"{}", "null"} {
			t.Run(name+" of "+item, func(t *testing.T) {
				data := []byte(file[0] + item + strings.Repeat(","+item, (2<<20)/(len(item)+1)) + file[1])
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := Parse(data)
				runtime.ReadMemStats(&after)
				var refused *Error
				if !errors.As(err, &refused) {
					t.Errorf("got %v, want an *Error", err)
				}
				if made := after.TotalAlloc - before.TotalAlloc; made > 200<<20 {
					t.Errorf("%d bytes were allocated, want at most 200 MB; the error is %v", made, err)
				}
			})
		}
	}
}
