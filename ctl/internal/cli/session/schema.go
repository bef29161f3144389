package session

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/glasses/scenario"
)

func (p *program) schema() *cobra.Command {
	return command.New("schema", "Print the JSON Schema of scenario files, for editors", "", func(context.Context) error {
		schema := json.RawMessage(scenario.Schema())
		return p.Print(schema, func() {
			for line := range strings.Lines(string(schema)) {
				p.Row("%s", strings.TrimRight(line, "\n"))
			}
		})
	})
}
