// Command package builds what is installed of hamlet: packages for Debian, an image for
// containers, archives of programs, the Python package, and all of it as a release. It runs in
// its own module, so hamlet's own modules stay few.
//
//	cd deploy/package
//	go run . deb                       # ../../bin/hamlet_…_amd64.deb and …_arm64.deb
//	go run . image                     # ../../bin/hamlet_….oci.tar, of both architectures
//	go run . --out DIR --arch arm64 deb image
//	go run . --out DIR release         # everything, with modules and checksums
//
// The same commit, built by the same version of Go, makes the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
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
			lab, err := writeLabDeb(r, arch, out)
			if err != nil {
				return paths, fmt.Errorf("%s: %w", arch, err)
			}
			paths = append(paths, path, lab)
		}
		return paths, nil
	},
	"image": func(ctx context.Context, r *Release, archs []string, out string) ([]string, error) {
		path, err := writeImage(ctx, r, archs, out)
		return []string{path}, err
	},
	"programs": func(ctx context.Context, r *Release, _ []string, out string) (paths []string, err error) {
		for _, arch := range everyArch {
			tree, err := r.Tree(ctx, arch)
			if err != nil {
				return paths, err
			}
			path, err := writeArchive(r, tree, arch, out)
			if err != nil {
				return paths, fmt.Errorf("%s: %w", arch, err)
			}
			paths = append(paths, path)
		}
		return paths, nil
	},
	"python": func(ctx context.Context, r *Release, _ []string, out string) ([]string, error) {
		return writePython(ctx, r, out)
	},
	"modules": func(_ context.Context, r *Release, _ []string, out string) ([]string, error) {
		text, _, err := r.modules()
		if err != nil {
			return nil, err
		}
		path := filepath.Join(out, "hamlet_"+r.Version+"_modules.txt")
		return []string{path}, os.WriteFile(path, []byte(text), 0o644)
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
	archs := flags.String("arch", "amd64,arm64", "architectures of packages and image, comma-separated")
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
	whole := slices.Equal(what, []string{"release"})
	if whole {
		if r.Commit == "unknown" || strings.Contains(r.Commit, " ") {
			return fmt.Errorf("a release is built of a clone without changes; here the commit is %s", r.Commit)
		}
		what = slices.Sorted(maps.Keys(products))
	}
	var all []string
	for _, name := range what {
		build, ok := products[name]
		if !ok {
			return fmt.Errorf("%s: there is no such product", name)
		}
		paths, err := build(ctx, r, strings.Split(*archs, ","), *out)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, paths...)
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			fmt.Printf("%s\t%.1f MB\n", filepath.Clean(path), float64(info.Size())/1e6)
		}
	}
	if !whole {
		return nil
	}
	path, err := checksums(all, *out)
	if err == nil {
		fmt.Println(filepath.Clean(path))
	}
	return err
}

// host is the architecture whose programs this machine runs.
var host = runtime.GOARCH

// everyArch are those on which hamlet makes the same models: .ci/run compares them.
var everyArch = []string{"amd64", "arm64", "riscv64", "s390x"}

func isArch(arch string) bool { return slices.Contains(everyArch, arch) }
