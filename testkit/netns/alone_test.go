//go:build linux

package netns

import (
	"net"
	"testing"
	"time"
)

func TestAloneEveryAddressIsOurs(t *testing.T) {
	if !Alone(t) {
		return
	}
	listener, err := net.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, address := range []string{"10.1.2.3", "127.9.9.9", "169.254.169.254", "93.184.216.34",
		"fd00:ec2::254",
		"2606:4700::1111", "fe80::1%lo", "64:ff9b::a00:1", "2002:a00:1::1", "::1", "100.64.0.1"} {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, "80"), 5*time.Second)
		if err != nil {
			t.Error(err)
			continue
		}
		accepted, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got := accepted.LocalAddr().(*net.TCPAddr).IP; !got.Equal(
			conn.RemoteAddr().(*net.TCPAddr).IP) {
			t.Errorf("%s: accepted for %s", address, got)
		}
		accepted.Close()
		conn.Close()
	}
	// A port without a listener does not answer at any address.
	if conn, err := net.DialTimeout("tcp", "192.0.2.1:81", 5*time.Second); err == nil {
		conn.Close()
		t.Error("somebody else answered")
	}
}
