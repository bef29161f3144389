// Package yamlfile strictly reads the operator's YAML files. It returns an error for unknown fields, further documents
// and oversized files.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/service-dev/service/internal/textfile"
)

// Read returns the content of a file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("read %s: the file is larger than %d KB", path, limit>>10)
	}
	if text, err = textfile.Decode(text); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return text, nil
}

// Decode decodes text, which must contain exactly one document.
func Decode(text []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file is empty")
		}
		return err
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return errors.New("the file contains more than one document")
	}
	return nil
}

// Whole is a whole number. Decoding an int64 would accept a fraction and truncate it.
type Whole int64

// UnmarshalYAML accepts whole numbers only.
func (w *Whole) UnmarshalYAML(n *yaml.Node) error {
	var value int64
	if n.Tag != "!!int" || n.Decode(&value) != nil {
		return fmt.Errorf("line %d: %.40q is not a whole number", n.Line, n.Value)
	}
	*w = Whole(value)
	return nil
}
