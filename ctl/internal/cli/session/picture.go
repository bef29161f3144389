package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/internal/problem"
)

func (p *program) picture() *cobra.Command {
	return &cobra.Command{
		Use: "picture [ID] FILE", Short: "Write what the wearer sees to a PNG file", Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: p.Complete(IDs),
		Long:              "The file must not exist yet. The picture is pixel-exact and identical on every transport.",
		RunE: p.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return p.writePicture(ctx, c, args, map[string]any{})
		}),
	}
}

// misfit is an element that does not fit a device model.
type misfit struct {
	Kind string `json:"kind"`
	Path string `json:"path"`
	ID   string `json:"id,omitempty"`
	Text string `json:"text,omitempty"`
}

// writePicture saves the picture of getDisplayState with this process's permissions; the daemon only draws it. args are
// an optional session ID and the file name.
func (p *program) writePicture(ctx context.Context, c *client.Client, args []string, options map[string]any) error {
	id, file := "", args[len(args)-1]
	if len(args) == 2 {
		id = args[0]
	}
	var display struct {
		SessionID, DeviceModel string
		Picture                struct{ SHA256 string }
		Models                 []struct {
			DeviceModel string   `json:"deviceModel"`
			Findings    []misfit `json:"findings"`
		}
	}
	_, pictures, err := command.CallToolWithPictures(ctx, c, "getDisplayState", withSession(id, options), &display)
	if err != nil {
		return err
	}
	if len(pictures) == 0 {
		return &problem.Error{Code: "unsupported", Message: display.DeviceModel + " has no display, so there is no picture",
			FixHint: "Change the glasses with the tool setDevice."}
	}
	path, err := absolute(file)
	if err != nil {
		return err
	}
	if err := writeNewFile(path, pictures[0].Data); err != nil {
		return err
	}
	answer := map[string]any{"sessionId": display.SessionID, "file": path, "sha256": display.Picture.SHA256}
	if display.Models != nil {
		answer["models"] = display.Models
	}
	return p.Print(answer, func() {
		for _, m := range display.Models {
			for _, f := range m.Findings {
				p.Row("%s: %s %s %q", m.DeviceModel, f.Kind, f.Path, f.Text)
			}
		}
		p.Say("Wrote %s.", path)
	})
}

// writeNewFile creates a file and fails if it exists. It does not follow symbolic links and removes the file if
// writing fails.
func writeNewFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &problem.Error{Code: "file_exists", Message: path + " already exists",
			FixHint: "Name another file, or remove this one first."}
	}
	if err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}
