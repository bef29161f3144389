package tools

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/glasses"
)

// earlierModel represents the device model before the first change in the rows. No row records that model.
const earlierModel = "an earlier device model"

// lastFindings returns the findings in the results of display.show. It omits findings that a later show on the same
// device model has fixed by showing the same node without the finding. model is the device model after the last row.
func lastFindings(rows []glasses.Event, model string) []scenario.Finding {
	if slices.ContainsFunc(rows, func(e glasses.Event) bool { return e.Type == glasses.TypeDevice }) {
		model = earlierModel
	}
	var list []scenario.Finding
	asked := map[string]json.RawMessage{}
	for _, e := range rows {
		switch {
		case e.Type == glasses.TypeDevice && e.Sender != glasses.SenderApp:
			var p glasses.DeviceChange
			if json.Unmarshal(e.Payload, &p) == nil {
				model = p.DeviceModel.ID
			}
		case e.Kind == glasses.KindRequest && e.Type == glasses.TypeDisplayShow:
			asked[e.ID] = e.Payload
		case e.Kind == glasses.KindResult:
			res, err := glasses.ParseResult(e.Payload)
			if err != nil || !res.OK {
				continue
			}
			if show, err := glasses.ParseShow(asked[e.ID]); err == nil {
				shown := nodeNames(&show.Tree)
				list = slices.DeleteFunc(list, func(f scenario.Finding) bool {
					return f.DeviceModel == model && shown[nodeName(f.ID, f.Path)]
				})
			}
			for _, f := range res.Findings {
				if one := (scenario.Finding{DeviceModel: model, Finding: f}); !slices.Contains(list, one) {
					list = append(list, one)
				}
			}
		}
	}
	return list
}

// nodeName identifies a node in several shows by its ID or, if it has none, by its path.
func nodeName(id, path string) string {
	if id != "" {
		return "#" + id
	}
	return path
}

func nodeNames(root *glasses.Node) map[string]bool {
	names := map[string]bool{}
	var visit func(n *glasses.Node, path string)
	visit = func(n *glasses.Node, path string) {
		names[nodeName(n.ID, path)] = true
		for i := range n.Children {
			visit(&n.Children[i], fmt.Sprintf("%s.children[%d]", path, i))
		}
	}
	visit(root, "tree")
	return names
}
