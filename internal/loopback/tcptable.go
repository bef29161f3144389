package loopback

import (
	"encoding/binary"
	"net/netip"
)

// Rows of the Windows tables of TCP connections, MIB_TCPROW_OWNER_PID and MIB_TCP6ROW_OWNER_PID, which consist of
// 32-bit words. A port is in the first half of its word, in network byte order.
const (
	row4Size, row4Local, row4LocalPort, row4Remote, row4RemotePort, row4PID = 24, 4, 8, 12, 16, 20
	row6Size, row6Local, row6LocalPort, row6Remote, row6RemotePort, row6PID = 56, 0, 20, 24, 44, 52
)

// findInTCPTable returns the process that owns the socket whose local address is peer and whose remote address is
// local. It is compiled and tested on every system.
func findInTCPTable(table []byte, ipv6 bool, peer, local netip.AddrPort) (pid uint32, found bool) {
	if len(table) < 4 {
		return 0, false
	}
	size, at := row4Size, [...]int{row4Local, row4LocalPort, row4Remote, row4RemotePort, row4PID}
	width := 4
	if ipv6 {
		size, at = row6Size, [...]int{row6Local, row6LocalPort, row6Remote, row6RemotePort, row6PID}
		width = 16
	}
	address := func(row []byte, host, port int) netip.AddrPort {
		addr, _ := netip.AddrFromSlice(row[host : host+width])
		return plain(netip.AddrPortFrom(addr, binary.BigEndian.Uint16(row[port:])))
	}
	rows := table[4:]
	for n := binary.LittleEndian.Uint32(table); n > 0 && len(rows) >= size; n-- {
		row := rows[:size]
		if address(row, at[0], at[1]) == peer && address(row, at[2], at[3]) == local {
			return binary.LittleEndian.Uint32(row[at[4]:]), true
		}
		rows = rows[size:]
	}
	return 0, false
}
