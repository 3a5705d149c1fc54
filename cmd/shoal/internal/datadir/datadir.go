// Package datadir has the files of a data directory through which commands find the service, and
// its lock.
package datadir

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Files of a data directory through which commands find the service.
const (
	AddressFile = "address" // http(s)://HOST:PORT, while the service runs
	KeyFile     = "api-key" // the self-hosting customer's key, mode 0600
)

// ReadLine reads a one-line file of the directory, without white space around the text. An empty
// file is an error.
func ReadLine(dir, name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	line := strings.TrimSpace(string(content))
	if line == "" {
		return "", fmt.Errorf("%s is empty", filepath.Join(dir, name))
	}
	return line, nil
}

// Publish writes the service's base address to its data directory for the other commands, including
// operators' ones; withdraw removes it.
func Publish(dir, server string) (withdraw func(), err error) {
	path := filepath.Join(dir, AddressFile)
	if err := os.WriteFile(path+".new", []byte(server+"\n"), 0o644); err != nil {
		return nil, fmt.Errorf("address file: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, fmt.Errorf("address file: %w", err)
	}
	return func() { _ = os.Remove(path) }, nil
}

// Reachable returns the address at which this machine reaches a listener. A listener on all
// addresses is reached on the loopback.
func Reachable(listening string) string {
	host, port, err := net.SplitHostPort(listening)
	if err != nil {
		return listening
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// Lock keeps a second process from using the same data.
func Lock(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		by := "another process"
		if server, err := ReadLine(dir, AddressFile); err == nil {
			by = "the process that serves " + server
		}
		return nil, errors.Join(fmt.Errorf("data directory %s is in use by %s", dir, by),
			file.Close())
	}
	return func() { _ = file.Close() }, nil // closing releases the lock
}
