package cli

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/service-dev/service/test/ownadapter"
)

// writeOwnAdapter implements `ownadapter FILE`, which builds the adapter of the documentation.
func writeOwnAdapter(ts *testscript.TestScript, _ bool, args []string) {
	source, err := ownadapter.Source()
	ts.Check(err)
	dir := ts.MkAbs("own-adapter")
	ts.Check(os.Mkdir(dir, 0o700))
	program, err := ownadapter.Build("../../..", dir, source, nil)
	ts.Check(err)
	ts.Check(os.Rename(program, ts.MkAbs(args[0])))
}
