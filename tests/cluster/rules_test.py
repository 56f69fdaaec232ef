#!/usr/bin/env python3
"""The alert rules of the chart in Prometheus' own hands: promtool reads them, and for each alert there is a time series on which
it fires, with these labels and words, and another on which it does not.

    rules_test.py [-v] [RulesTest.test_…]      in the repository's root

Status 77 (skipped) where promtool cannot be built.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/chart"))

import chart

yaml = chart.yaml
RULES = ROOT / "charts/tahoma/rules/tahoma.yaml"
PROMTOOL = None
MINUTES = 90  # of each series

# Alert -> (minute at which it fires, its series, its labels, its summary; series on which it does not fire at that minute).
# A series is written as promtool has it: 1x90 is 1 for 90 minutes, 0+2x90 grows by 2 each minute, _ is no sample.
POD = 'namespace="tahoma-system",pod="c-0"'
PLUGIN = 'namespace="tahoma-system",pod="d-0",node="n-0"'
OF_POD = {"namespace": "tahoma-system", "pod": "c-0"}
OF_PLUGIN = {"namespace": "tahoma-system", "pod": "d-0"}
CASES = {
    "TahomaControllerDown": (6, {}, {"program": "controller"}, "No controller of Tahoma is scraped.",
                             {'tahoma_build_info{program="controller",version="1"}': f"1x{MINUTES}"}),
    "TahomaNoLeader": (3, {'tahoma_leader{pod="c-0"}': f"0x{MINUTES}", 'tahoma_leader{pod="c-1"}': f"0x{MINUTES}"}, {},
                       "No controller of Tahoma leads.",
                       {'tahoma_leader{pod="c-0"}': f"0x{MINUTES}", 'tahoma_leader{pod="c-1"}': f"1x{MINUTES}"}),
    "TahomaStoreNotWritable": (3, {f"tahoma_store_writable{{{POD}}}": f"0x{MINUTES}"}, OF_POD,
                               "The controller c-0 cannot write its store.",
                               {f"tahoma_store_writable{{{POD}}}": f"0 1 0 1x{MINUTES}"}),
    "TahomaGangsWaitLong": (71, {"tahoma_gang_longest_wait_seconds": f"0+60x{MINUTES}"}, {},
                            "A gang has waited 1h 11m 0s for a place.",
                            {"tahoma_gang_longest_wait_seconds": f"3600x{MINUTES}"}),
    "TahomaGangsNeverFit": (16, {'tahoma_gangs{kind="Gang",phase="Pending",reason="NeverFits"}': f"2x{MINUTES}"},
                            {"reason": "NeverFits"}, "2 gangs cannot run on this fleet (NeverFits).",
                            {'tahoma_gangs{kind="Gang",phase="Pending",reason="WaitsForCapacity"}': f"2x{MINUTES}"}),
    "TahomaGangsDegraded": (16, {'tahoma_gangs{kind="Gang",phase="Degraded",reason="MemberLost"}': f"1x{MINUTES}"},
                            {"reason": "MemberLost"}, "1 gangs run without all of their members (MemberLost).",
                            {'tahoma_gangs{kind="Gang",phase="Running",reason=""}': f"1x{MINUTES}"}),
    "TahomaChipsBroken": (11, {'tahoma_chips{state="broken"}': f"3x{MINUTES}"}, {}, "3 chips are broken or cordoned.",
                          {'tahoma_chips{state="broken"}': f"3x5 0x{MINUTES}", 'tahoma_chips{state="used"}': f"9x{MINUTES}"}),
    "TahomaNodesNotReady": (11, {'tahoma_nodes{state="not_ready"}': f"2x{MINUTES}"}, {},
                            "2 nodes with Trainium devices are not ready.",
                            {'tahoma_nodes{state="not_ready"}': f"0x{MINUTES}", 'tahoma_nodes{state="cordoned"}': f"2x{MINUTES}"}),
    "TahomaDriverNotRegistered": (11, {f"tahoma_dra_registered{{{PLUGIN}}}": f"0x{MINUTES}"}, {**OF_PLUGIN, "node": "n-0"},
                                  "No kubelet has registered the driver of pod d-0.",
                                  {f"tahoma_dra_registered{{{PLUGIN}}}": f"1x{MINUTES}"}),
    "TahomaDriverLostDevices": (6, {f"tahoma_dra_sim_node_connected{{{PLUGIN}}}": f"0x{MINUTES}"}, {**OF_PLUGIN, "node": "n-0"},
                                "The driver of pod d-0 does not follow its node's devices.",
                                {f"tahoma_dra_sim_node_connected{{{PLUGIN}}}": f"0x3 1x{MINUTES}"}),
    "TahomaPreparesFail": (12, {f'tahoma_dra_prepare_failures_total{{{PLUGIN},reason="unhealthy"}}': f"0+1x{MINUTES}"},
                           {**OF_PLUGIN, "reason": "unhealthy"}, "The driver of pod d-0 cannot prepare claims (unhealthy).",
                           {f'tahoma_dra_prepare_failures_total{{{PLUGIN},reason="unhealthy"}}': f"7x{MINUTES}"}),
    "TahomaClockLeapt": (2, {f"tahoma_clock_leap_seconds{{{POD}}}": f"7200x{MINUTES}"}, OF_POD,
                         "The clock of the machine of c-0 has leapt 2h 0m 0s ahead.",
                         {f"tahoma_clock_leap_seconds{{{POD}}}": f"0x{MINUTES}"}),
    "TahomaAuditLost": (10, {f"tahoma_audit_lines_lost_total{{{POD}}}": f"0x5 3x{MINUTES}"}, OF_POD, "The audit of c-0 has lost lines.",
                        {f"tahoma_audit_lines_lost_total{{{POD}}}": f"3x{MINUTES}"}),
    "TahomaIdentitiesStale": (16, {f"tahoma_identities_stale{{{POD}}}": f"1x{MINUTES}"}, OF_POD,
                              "Changed identities of c-0 are not in force.",
                              {f"tahoma_identities_stale{{{POD}}}": f"1x10 0 1x{MINUTES}"}),
}


def rules():
    return {rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}


def promtool(*arguments):
    done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def case(alert, minute, series, expected):
    return {"name": alert, "interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "alert_rule_test": [{"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": expected}]}


def tested(cases):
    """promtool's answer to the cases."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": cases}, file)
        file.flush()
        return promtool("test", "rules", file.name)


def firing(alert):
    """The case on which the alert fires."""
    minute, series, labels, summary, _ = CASES[alert]
    rule = rules()[alert]
    return case(alert, minute, series, [{"exp_labels": {**labels, **rule["labels"]},
                                         "exp_annotations": {**rule["annotations"], "summary": summary}}])


class RulesTest(unittest.TestCase):
    def test_promtool_finds_no_fault_in_the_rules(self):
        status, said = promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
        self.assertEqual(status, 0, said)
        self.assertIn(f"{len(rules())} rules found", said)

    def test_each_alert_has_its_cases(self):
        self.assertEqual(sorted(CASES), sorted(rules()))

    def test_each_alert_fires_and_says_why(self):
        for alert in CASES:
            with self.subTest(alert=alert):
                status, said = tested([firing(alert)])
                self.assertEqual(status, 0, said)

    def test_each_alert_waits_for_as_long_as_it_says(self):
        for alert, (minute, series, *_) in CASES.items():
            if "for" in rules()[alert]:
                with self.subTest(alert=alert):
                    early = minute - int(rules()[alert]["for"].removesuffix("m")) - 1
                    status, said = tested([case(alert, max(early, 0), series, [])])
                    self.assertEqual(status, 0, said)

    def test_no_alert_fires_on_what_is_well(self):
        for alert, (minute, _, _, _, series) in CASES.items():
            with self.subTest(alert=alert):
                status, said = tested([case(alert, minute, series, [])])
                self.assertEqual(status, 0, said)

    def test_promtool_says_so_when_an_alert_does_not_fire(self):
        wrong = firing("TahomaNoLeader")
        wrong["input_series"][0]["values"] = f"1x{MINUTES}"
        self.assertNotEqual(tested([wrong])[0], 0)


if __name__ == "__main__":
    tools = subprocess.run([ROOT / "tests/cluster/build_tools.sh", "tools-promtool"], stdout=subprocess.PIPE, text=True, check=False)
    if tools.returncode != 0:
        sys.exit(tools.returncode)
    PROMTOOL = tools.stdout.strip() + "/promtool"
    unittest.main()
