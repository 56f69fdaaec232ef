package manager

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// promtool check metrics asks the same package.
func lintMetrics(t *testing.T, url string) {
	t.Helper()
	answer, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	problems, err := promlint.New(answer.Body).Lint()
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s: %s", url, problem.Metric, problem.Text)
	}
}

func TestMetricsOfTheControllerAreAsPrometheusAsks(t *testing.T) {
	lintMetrics(t, "http://"+server.address)
}

func TestMetricsOfANodeAreAsPrometheusAsks(t *testing.T) {
	folder, err := os.MkdirTemp("", "tahoma-node-") // 0700, as the node asks for its socket's folder
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ports := filepath.Join(folder, "ports")
	node := exec.Command(filepath.Join(os.Getenv("TAHOMA_BIN"), "sim-node"), "--node-name", "n",
		"--node-socket", filepath.Join(folder, "node.sock"), "--state-dir", folder,
		"--port-file", ports)
	node.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	defer node.Wait()
	defer node.Process.Kill()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		text, _ := os.ReadFile(ports)
		if _, rest, found := strings.Cut(string(text), "adminAddress: "); found {
			address, _, _ := strings.Cut(rest, "\n")
			lintMetrics(t, "http://"+strings.Trim(address, "\""))
			return
		}
	}
	t.Fatal("the node does not serve")
}
