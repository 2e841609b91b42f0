// Command package builds what is installed of hamlet: packages for Debian, and an image for
// containers. It runs in its own module, so hamlet's own modules stay few.
//
//	cd deploy/package
//	go run . deb                       # ../../bin/hamlet_…_amd64.deb and …_arm64.deb
//	go run . image                     # ../../bin/hamlet_….oci.tar, of both architectures
//	go run . --out /tmp --arch arm64 deb image
//
// The same commit, built by the same version of Go, makes the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// products are what can be built. To add one, add its function.
var products = map[string]func(ctx context.Context, r *Release, archs []string, out string) (paths []string, err error){
	"deb": func(ctx context.Context, r *Release, archs []string, out string) (paths []string, err error) {
		for _, arch := range archs {
			tree, err := r.Tree(ctx, arch)
			if err != nil {
				return paths, err
			}
			path, err := writeDeb(r, tree, arch, out)
			if err != nil {
				return paths, fmt.Errorf("%s: %w", arch, err)
			}
			paths = append(paths, path)
		}
		return paths, nil
	},
	"image": func(ctx context.Context, r *Release, archs []string, out string) ([]string, error) {
		path, err := writeImage(ctx, r, archs, out)
		return []string{path}, err
	},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("package", flag.ContinueOnError)
	out := flags.String("out", "../../bin", "directory of the results")
	archs := flags.String("arch", "amd64,arm64", "architectures, comma-separated")
	repository := flags.String("repository", "../..", "directory of hamlet's sources")
	if err := flags.Parse(args); err != nil {
		return err
	}
	what := flags.Args()
	if len(what) == 0 {
		what = []string{"deb"}
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "hamlet-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r, err := NewRelease(ctx, *repository, work)
	if err != nil {
		return err
	}
	for _, name := range what {
		build, ok := products[name]
		if !ok {
			return fmt.Errorf("%s: there is no such product", name)
		}
		paths, err := build(ctx, r, strings.Split(*archs, ","), *out)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			fmt.Printf("%s\t%.1f MB\n", filepath.Clean(path), float64(info.Size())/1e6)
		}
	}
	return nil
}

// host is the architecture whose programs this machine runs.
var host = runtime.GOARCH

// archs are those that a release is built for.
func isArch(arch string) bool { return slices.Contains([]string{"amd64", "arm64"}, arch) }
