package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// A cluster is what a kustomization makes, by name.
type cluster struct {
	deployments map[string]*apps.Deployment
	services    map[string]*core.Service
	configs     map[string]*core.ConfigMap
	secrets     map[string]*core.Secret
	scalers     map[string]*autoscaling.HorizontalPodAutoscaler
	budgets     map[string]*policy.PodDisruptionBudget
	policies    map[string]*networking.NetworkPolicy
}

// kustomize builds a kustomization and decodes what it makes. A field that Kubernetes does
// not know fails the test.
func kustomize(t *testing.T, dir string) *cluster {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../kubernetes/"+dir)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{
		map[string]*apps.Deployment{}, map[string]*core.Service{}, map[string]*core.ConfigMap{}, map[string]*core.Secret{},
		map[string]*autoscaling.HorizontalPodAutoscaler{}, map[string]*policy.PodDisruptionBudget{}, map[string]*networking.NetworkPolicy{},
	}
	for _, r := range made.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		kind := r.GetGvk().String()
		switch kind {
		case "Deployment.v1.apps":
			err = strict(text, c.deployments, r.GetName())
		case "Service.v1.[noGrp]":
			err = strict(text, c.services, r.GetName())
		case "ConfigMap.v1.[noGrp]":
			err = strict(text, c.configs, r.GetName())
		case "Secret.v1.[noGrp]":
			err = strict(text, c.secrets, r.GetName())
		case "ServiceAccount.v1.[noGrp]":
			err = strict(text, map[string]*core.ServiceAccount{}, r.GetName())
		case "HorizontalPodAutoscaler.v2.autoscaling":
			err = strict(text, c.scalers, r.GetName())
		case "PodDisruptionBudget.v1.policy":
			err = strict(text, c.budgets, r.GetName())
		case "NetworkPolicy.v1.networking.k8s.io":
			err = strict(text, c.policies, r.GetName())
		default:
			err = fmt.Errorf("the test knows no %s", kind)
		}
		if err != nil {
			t.Errorf("%s: %s %s: %v", dir, kind, r.GetName(), err)
		}
	}
	return c
}

// strict decodes an object into a map.
func strict[T any](text []byte, into map[string]*T, name string) error {
	object := new(T)
	into[name] = object
	return yaml.UnmarshalStrict(text, object)
}

// Each kustomization makes what Kubernetes takes, and its parts fit together: selectors, ports,
// rights, probes, configuration.
func TestKubernetes(t *testing.T) {
	for dir, replicas := range map[string]map[string]int32{
		"base":                {"hamlet-learner": 2, "hamlet-scorer": 2, "hamlet-gateway": 2, "hamlet-console": 1},
		"overlays/trial":      {"hamlet-learner": 1, "hamlet-scorer": 2, "hamlet-gateway": 1, "hamlet-console": 1},
		"overlays/production": {"hamlet-learner": 3, "hamlet-scorer": 2, "hamlet-gateway": 3, "hamlet-console": 2},
	} {
		c := kustomize(t, dir)
		if len(c.deployments) != len(replicas) || len(c.policies) != 5 || len(c.configs) != 1 {
			t.Errorf("%s makes %d deployments, %d network policies and %d configurations", dir, len(c.deployments), len(c.policies), len(c.configs))
		}
		for name, d := range c.deployments {
			if d.Spec.Replicas == nil || *d.Spec.Replicas != replicas[name] {
				t.Errorf("%s: %s has %v replicas, want %d", dir, name, d.Spec.Replicas, replicas[name])
			}
			c.checkPod(t, dir+" "+name, d)
		}
		for name, s := range c.services {
			d := c.deployments[name]
			for _, p := range s.Spec.Ports {
				if !slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, func(of core.ContainerPort) bool { return of.Name == p.TargetPort.StrVal }) {
					t.Errorf("%s: the service %s names the port %s, which no container has", dir, name, p.TargetPort.StrVal)
				}
			}
		}
		for name, b := range c.budgets {
			if d := c.deployments[name]; !within(b.Spec.Selector.MatchLabels, d.Spec.Template.Labels) {
				t.Errorf("%s: the budget %s selects no pods", dir, name)
			}
		}
		for name, p := range c.policies {
			if d := c.deployments[name]; d != nil && !within(p.Spec.PodSelector.MatchLabels, d.Spec.Template.Labels) {
				t.Errorf("%s: the network policy %s selects no pods", dir, name)
			}
		}
		for name, h := range c.scalers {
			if c.deployments[h.Spec.ScaleTargetRef.Name] == nil {
				t.Errorf("%s: %s scales %s", dir, name, h.Spec.ScaleTargetRef.Name)
			}
			metric := h.Spec.Metrics[0].Pods.Metric.Name
			rule, err := os.ReadFile("../kubernetes/adapter.yaml")
			if err != nil || !strings.Contains(string(rule), "as: "+metric+"\n") {
				t.Errorf("%s: no rule of the adapter makes %s (%v)", dir, metric, err)
			}
		}
		if dir == "overlays/production" && (len(c.secrets) > 0 || len(c.scalers) != 1 || len(c.budgets) != 4) {
			t.Errorf("%s: %d secrets, %d scalers, %d budgets", dir, len(c.secrets), len(c.scalers), len(c.budgets))
		}
	}
}

// within reports whether all labels are among those of a pod.
func within(labels, pod map[string]string) bool {
	for k, v := range labels {
		if pod[k] != v {
			return false
		}
	}
	return len(labels) > 0
}

// checkPod checks what a deployment's pods are.
func (c *cluster) checkPod(t *testing.T, name string, d *apps.Deployment) {
	t.Helper()
	if !within(d.Spec.Selector.MatchLabels, d.Spec.Template.Labels) {
		t.Errorf("%s selects other pods than its own", name)
	}
	pod := d.Spec.Template.Spec
	box := pod.Containers[0]
	if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser != imageUser {
		t.Errorf("%s may run as root: %+v", name, s)
	}
	if s := box.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
		t.Errorf("%s may more than it needs: %+v", name, s)
	}
	for what, probe := range map[string]*core.Probe{"/readyz": box.ReadinessProbe, "/healthz": box.LivenessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != what || !slices.ContainsFunc(box.Ports, func(p core.ContainerPort) bool { return p.Name == probe.HTTPGet.Port.StrVal }) {
			t.Errorf("%s is not asked for %s: %+v", name, what, probe)
		}
	}
	// The program takes the configuration, and listens where the manifest says.
	for _, config := range c.configs {
		text := config.Data["hamlet.yaml"]
		dir := t.TempDir()
		file := filepath.Join(dir, "hamlet.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append(slices.Clone(box.Command[1:]), slices.Clone(box.Args)...)
		args[slices.Index(args, "/etc/hamlet/hamlet.yaml")] = file
		command(t, release.program(host, filepath.Base(box.Command[0])), append(args, "--help")...)
		for _, p := range box.Ports {
			if !strings.Contains(text, fmt.Sprintf(`":%d"`, p.ContainerPort)) {
				t.Errorf("%s: nothing listens at port %d", name, p.ContainerPort)
			}
		}
	}
}

// The compose file is one, and its commands are hamlet's.
func TestCompose(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"../compose.yaml"}, cli.WithEnv([]string{"HAMLET_TOKEN=secret"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(project.Services) != 6 {
		t.Errorf("there are %d services", len(project.Services))
	}
	// Redis by itself serves no other machine that has no password. The image may say otherwise, but need not.
	if args := strings.Join(project.Services["redis"].Command, " "); !strings.Contains(args, "--protected-mode no") {
		t.Errorf("redis is %s", args)
	}
	for name, s := range project.Services {
		if !strings.HasPrefix(s.Image, "hamlet:") {
			continue
		}
		if s.Image != "hamlet:"+release.Version || !s.ReadOnly {
			t.Errorf("%s: image %s, read-only %v", name, s.Image, s.ReadOnly)
		}
		if format := s.Environment["HAMLET_LOG_FORMAT"]; format == nil || *format != "json" {
			t.Errorf("%s does not log in JSON", name)
		}
		program := "hamlet"
		if len(s.Entrypoint) > 0 {
			program = filepath.Base(s.Entrypoint[0])
		}
		command(t, release.program(host, program), append(slices.Clone([]string(s.Command)), "--help")...)
	}
}
