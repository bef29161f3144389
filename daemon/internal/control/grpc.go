package control

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"runtime"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/service-dev/service/internal/problem"
)

// refuseGRPC responds to a client that uses gRPC, as older versions of servicectl do. Such a client prints the error in
// the details of the status, with its message and fix hint.
func (s *Server) refuseGRPC(w http.ResponseWriter, conn *limitedConn) {
	const failedPrecondition = 9
	s.conns.log.Warn("refused a control call", "code", problem.CodeProtocolMismatch, "pid", conn.pid)
	message := fmt.Sprintf("this program is too old for the running daemon (%s)", s.o.About.Version)
	refusal := appendText(nil, 1, problem.CodeProtocolMismatch)
	refusal = appendText(refusal, 2, message)
	refusal = appendText(refusal, 4, s.grpcHint())
	detail := appendText(nil, 1, "type.googleapis.com/service.control.v1.Error")
	detail = appendText(detail, 2, string(refusal))
	status := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), failedPrecondition)
	status = appendText(status, 2, message)
	status = appendText(status, 3, string(detail))
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", fmt.Sprint(failedPrecondition))
	w.Header().Set("Grpc-Message", url.PathEscape(message))
	w.Header().Set("Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(status))
}

// grpcHint returns the next step for an old servicectl, which cannot stop this daemon itself.
func (s *Server) grpcHint() string {
	end := "kill"
	if runtime.GOOS == "windows" {
		end = "taskkill /f /pid"
	}
	return fmt.Sprintf("Use the servicectl of version %s, or, after a downgrade, run `%s %d`: connected agents continue "+
		"with the installed version.", s.o.About.Version, end, s.o.About.PID)
}

// appendText appends a text field to a protobuf message.
func appendText(message []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(message, field, protowire.BytesType), text)
}
