package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
)

func (a *app) sessionPicture() *cobra.Command {
	return &cobra.Command{
		Use: "picture [ID] FILE", Short: "Write what the wearer sees to a PNG file", Args: cobra.RangeArgs(1, 2),
		Long:    "The file must not exist yet. The picture is exact to the pixel and equal on every transport.",
		Example: "  servicectl session picture panel.png",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, file := "", args[0]
			if len(args) == 2 {
				id, file = args[0], args[1]
			}
			c, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			return a.writePicture(cmd.Context(), c, id, file)
		},
	}
}

// writePicture saves the panel's picture with the rights of this process; the daemon only draws it.
func (a *app) writePicture(ctx context.Context, c *client.Client, id, file string) error {
	var display struct {
		SessionID, DeviceModel string
		Picture                struct{ SHA256 string }
	}
	_, pictures, err := askPictured(ctx, c, "getDisplayState", withSession(id, map[string]any{}), &display)
	if err != nil {
		return err
	}
	if len(pictures) == 0 {
		return &client.Error{Code: "unsupported", Message: display.DeviceModel + " has no display, so there is no picture", FixHint: "change the glasses with the tool setDevice"}
	}
	path, err := absolute(file)
	if err != nil {
		return err
	}
	if err := writeNewFile(path, pictures[0].GetData()); err != nil {
		return err
	}
	if a.json {
		return a.JSON(map[string]any{"sessionId": display.SessionID, "file": path, "sha256": display.Picture.SHA256})
	}
	a.Say("Wrote %s.", path)
	return nil
}

// writeNewFile writes a file that does not exist yet; symbolic links are not followed, and nothing is left of a failure.
func writeNewFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &client.Error{Code: "file_exists", Message: path + " exists already", FixHint: "name another file, or remove this one first"}
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
