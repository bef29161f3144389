package scaffold

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/proto/glasses/guide"
)

// ModuleOf returns the module of an example with further capabilities. Errors are *Error.
func ModuleOf(e Example, more []string) (files []File, capabilities []string, err error) {
	r, err := Normalise(Request{Language: e.Language, Capabilities: slices.Concat(e.Capabilities, more)})
	if err != nil {
		return nil, nil, err
	}
	files, err = Generate(r)
	return files, r.Capabilities, err
}

// Place writes an example and its module into the folder root, which is absolute. The module gets the capabilities of
// the example, those in more, and those that an existing module has. An example that was changed by hand is kept. A
// module that was changed by hand, or that belongs to a project, is reported and nothing is written. Errors are *Error.
func Place(
	ctx context.Context, files clientio.Files, root string, e Example, more []string,
) (written []WrittenFile, capabilities []string, err error) {
	p, err := openProject(ctx, Order{Files: files, Root: root})
	if err != nil {
		return nil, nil, err
	}
	if len(p.manifest.Modules) > 0 {
		return nil, nil, &Error{CodeInvalidRequest, path.Join(p.dir, ManifestName) + " says that the module is generated " +
			"for this project", "call generateConnectionModule for the module, and this tool without dir for the example"}
	}
	module, _, err := ModuleOf(e, more)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range module {
		there, err := p.exampleModule(ctx, e.Language, f)
		if err != nil {
			return nil, nil, err
		}
		more = slices.Concat(more, there)
	}
	if module, capabilities, err = ModuleOf(e, more); err != nil {
		return nil, nil, err
	}
	for _, f := range module {
		if err := p.put(ctx, path.Join(p.dir, f.Name), f.Data, 0o644); err != nil {
			return nil, nil, folderError(p.dir, err)
		}
	}
	err = p.files.Create(ctx, e.Name, []byte(e.Code), 0o644, 0o755)
	state := "created"
	if errors.Is(err, fs.ErrExist) {
		var old []byte
		old, err = p.files.Read(ctx, e.Name, maxRead)
		if state = "kept"; bytes.Equal(old, []byte(e.Code)) {
			state = "unchanged"
		}
	}
	if err != nil {
		return nil, nil, folderError(filepath.Base(root), err)
	}
	return append([]WrittenFile{{e.Name, state}}, p.written...), capabilities, nil
}

// exampleModule returns the capabilities of an existing module file, or none if there is no such file. A file that
// differs from the generated one is an error.
func (p *project) exampleModule(ctx context.Context, language string, f File) ([]string, error) {
	name := path.Join(p.dir, f.Name)
	data, err := p.files.Read(ctx, name, maxRead)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, folderError(name, err)
	}
	if m := modulePattern.FindSubmatch(data[:min(len(data), 400)]); m != nil && string(m[1]) == Version {
		capabilities := strings.Split(string(m[2]), ", ")
		if same, err := Generate(Request{Language: language, Capabilities: capabilities}); err == nil &&
			bytes.Equal(same[0].Data, data) {
			return capabilities, nil
		}
	}
	return nil, &Error{CodeDrift, fmt.Sprintf("%s was changed by hand, or is not of this version", name),
		"move the changes into a file of the app's own, delete this one, and call again"}
}

// exampleHint says how the module of an example gets a capability without an account.
func exampleHint(id string) string {
	return fmt.Sprintf(`call getCodeExample with the same language and topic, dir, and capabilities ["%s"], `+
		"which adds it to the module and needs no account", id)
}

// generateHint says how to add a capability to the generated module.
func (c *checker) generateHint(capability guide.Capability) string {
	if !c.generated() {
		return exampleHint(capability.ID)
	}
	return "call generateConnectionModule with " + capability.ID + " among the capabilities"
}
