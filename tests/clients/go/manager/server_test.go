// Package manager drives the standalone controller with controller-runtime and client-go, as operators
// written in Go do. One server for all tests; each test has a namespace of its own.
package manager

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// patience is how long something may take that happens by itself.
const patience = 30 * time.Second

var server *standalone

// standalone is a running controller; it can be started again on its address and its data.
type standalone struct {
	folder  string
	address string
	process *exec.Cmd
}

func (s *standalone) start() error {
	ports := filepath.Join(s.folder, "ports")
	os.Remove(ports)
	listen := s.address
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s.process = exec.Command(filepath.Join(os.Getenv("TAHOMA_BIN"), "controller"), "--standalone",
		"--data-dir", filepath.Join(s.folder, "data"), "--listen-address", listen,
		"--admin-address", "127.0.0.1:0", "--crd-dir", os.Getenv("TAHOMA_CRDS"), "--port-file", ports)
	s.process.Stdout, s.process.Stderr = log, log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		text, _ := os.ReadFile(ports)
		if key, rest, found := strings.Cut(string(text), ": "); found && key == "listenAddress" {
			s.address, _, _ = strings.Cut(rest, "\n")
			return nil
		}
	}
	return fmt.Errorf("the controller does not serve:\n%s", s.log())
}

func (s *standalone) stop(signal os.Signal) {
	s.process.Process.Signal(signal)
	s.process.Wait()
}

func (s *standalone) log() string {
	text, _ := os.ReadFile(filepath.Join(s.folder, "log"))
	return string(text)
}

func (s *standalone) config() *rest.Config {
	return &rest.Config{Host: "http://" + s.address, QPS: -1}
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "tahoma-go-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		server = &standalone{folder: folder}
		if err := server.start(); err != nil {
			fmt.Println(err)
			return 1
		}
		defer func() { server.stop(syscall.SIGTERM) }()
		code := m.Run()
		if code != 0 {
			fmt.Println(server.log())
		}
		return code
	}())
}

// forms counts the media types of requests and answers that have a body.
type forms struct {
	mutex sync.Mutex
	seen  map[string]int
}

func (f *forms) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		f.mutex.Lock()
		defer f.mutex.Unlock()
		if form := request.Header.Get("Content-Type"); form != "" {
			f.seen["sent "+form]++
		}
		if err == nil {
			f.seen["got "+answer.Header.Get("Content-Type")]++
		}
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// space creates a namespace for a test.
func space(t *testing.T, c client.Client) string {
	t.Helper()
	namespace := &core.Namespace{ObjectMeta: meta.ObjectMeta{GenerateName: "test-"}}
	must(t, c.Create(t.Context(), namespace))
	return namespace.Name
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(server.config(), client.Options{})
	must(t, err)
	return c
}

// newManager returns a manager that opens no ports; start runs it until the test or `stop` ends it.
func newManager(t *testing.T, options manager.Options) ctrl.Manager {
	t.Helper()
	options.Metrics = metrics.Options{BindAddress: "0"}
	options.HealthProbeBindAddress = "0"
	m, err := ctrl.NewManager(server.config(), options)
	must(t, err)
	return m
}

func start(t *testing.T, m ctrl.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := m.Start(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("the manager ended: %v", err)
		}
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			<-ended
		})
	}
	t.Cleanup(stop)
	return stop
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until `holds`, which says what is missing.
func eventually(t *testing.T, holds func() (bool, string)) {
	t.Helper()
	missing := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var ok bool
		if ok, missing = holds(); ok {
			return
		}
	}
	t.Fatalf("not within %v: %s", patience, missing)
}

var gangKind = schema.GroupVersionKind{Group: "tahoma.dev", Version: "v1alpha1", Kind: "Gang"}

func gang(namespace, name string, members int64) *unstructured.Unstructured {
	g := &unstructured.Unstructured{}
	g.SetGroupVersionKind(gangKind)
	g.SetNamespace(namespace)
	g.SetName(name)
	unstructured.SetNestedField(g.Object, members, "spec", "members")
	return g
}

func pod(namespace, name string) *core.Pod {
	return &core.Pod{
		ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "main", Image: "train"}}},
	}
}

func configMap(namespace, name string, data map[string]string) *core.ConfigMap {
	return &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}
