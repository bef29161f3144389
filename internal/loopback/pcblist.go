package loopback

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// Records in the list of TCP control blocks of macOS (bsd/netinet/in_pcb.h and bsd/sys/socketvar.h of its kernel). Each
// record begins with its length and kind and is padded to eight bytes. The records of a connection are adjacent, with
// the control block first. Offsets are for structures packed to four bytes.
const (
	pcbHeaderSize = 24 // struct xinpgen, which also terminates the list

	kindSocket = 0x001 // struct xsocket_n
	kindINPCB  = 0x010 // struct xinpcb_n

	pcbForeignPort = 16
	pcbLocalPort   = 18
	pcbVersion     = 44 // 1: IPv4, 2: IPv6
	pcbForeign     = 48 // 16 bytes; IPv4 uses the last four
	pcbLocal       = 64
	pcbSize        = 80

	socketType = 16
	socketUID  = 64
	socketSize = 68
	sockStream = 1
)

var errPCBList = errors.New("the list of TCP connections has an unknown format")

// findInPCBList returns the owner of the socket whose local address is peer and whose remote address is local. It is
// compiled and tested on every system.
func findInPCBList(list []byte, peer, local netip.AddrPort) (uid uint32, err error) {
	if len(list) < pcbHeaderSize {
		return 0, errPCBList
	}
	order := binary.NativeEndian
	list = list[(order.Uint32(list)+7)&^7:]
	wanted := false // the records belong to the wanted connection
	for len(list) > pcbHeaderSize {
		size, kind := order.Uint32(list), order.Uint32(list[4:])
		if size < 8 || int(size) > len(list) {
			return 0, errPCBList
		}
		record := list[:size]
		switch {
		case kind == kindINPCB && size >= pcbSize:
			wanted = pcbAddress(record, pcbLocal, pcbLocalPort) == peer &&
				pcbAddress(record, pcbForeign, pcbForeignPort) == local
		case kind == kindSocket && size >= socketSize:
			// The record of a control block without a socket is empty.
			if wanted && order.Uint16(record[socketType:]) == sockStream {
				return order.Uint32(record[socketUID:]), nil
			}
		}
		list = list[min(len(list), int(size+7)&^7):]
	}
	return 0, ErrNoOwner
}

func pcbAddress(record []byte, at, port int) netip.AddrPort {
	raw := record[at : at+16]
	if record[pcbVersion]&1 != 0 {
		raw = raw[12:]
	}
	addr, _ := netip.AddrFromSlice(raw)
	return plain(netip.AddrPortFrom(addr, binary.BigEndian.Uint16(record[port:])))
}
