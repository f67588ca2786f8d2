// Fetches targets with the client of go-tuf as it is configured by default: gotuf ROOT BASE FOLDER TARGET...
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"github.com/theupdateframework/go-tuf/v2/metadata/config"
	"github.com/theupdateframework/go-tuf/v2/metadata/updater"
)

func fail(where string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", where, err)
		os.Exit(1)
	}
}

func main() {
	root, err := os.ReadFile(os.Args[1])
	fail("root", err)
	settings, err := config.New(os.Args[2]+"/metadata", root)
	fail("settings", err)
	settings.LocalMetadataDir, settings.LocalTargetsDir = os.Args[3], os.Args[3]
	settings.RemoteTargetsURL = os.Args[2] + "/targets"
	client, err := updater.New(settings)
	fail("client", err)
	fail("refresh", client.Refresh())
	for _, name := range os.Args[4:] {
		target, err := client.GetTargetInfo(name)
		fail(name, err)
		_, data, err := client.DownloadTarget(target, filepath.Join(os.Args[3], "target"), "")
		fail(name, err)
		fmt.Printf("%x %s\n", sha256.Sum256(data), name)
	}
}
