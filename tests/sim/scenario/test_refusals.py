"""What a scenario file must not say: each mistake with its line, its marked text and its words.

Method: one table. A row is put behind ``BASE`` (three brokers, topic ``orders`` with one
partition), and the first problem must mark the text in «», say what the row says, and hint.
"""

# ruff: noqa: E501 - a row of a table is a line

from __future__ import annotations

import pytest

from sim.scenario.problems import REFUSALS_MAX, Problem
from tests.sim.scenario.texts import BASE, HEAD, TOPIC, problems, read, said

PRODUCE = '[[step]]\nat = "1s"\nproduce = { to = "orders-0", count = 1 }\n'
CUT = '[[step]]\nid = "lag"\nat = "2s"\ncut = { from = "b1", to = "b2" }\n'

ROWS: tuple[tuple[str, str, str], ...] = (
    # Keys.
    ("«sed» = 7", 'unknown key "sed"', 'did you mean "seed"?'),
    ("[«clustr»]\n", 'unknown key "clustr"', 'did you mean "cluster"?'),
    ("[[«steps»]]\n", 'unknown key "steps"', "write [[step]]"),
    ("[cluster]\n«trunkation» = 'fetch'", 'unknown key "trunkation"', 'did you mean "truncation"?'),
    ("[cluster]\n«1» = 2", 'unknown key "1"', ""),
    ("[[step]]\n«krash» = 'b1'", 'unknown action "krash"', 'did you mean "crash"?'),
    ("[[step]]\ncrash = { node = 'b1', «hwo» = 'power' }", 'unknown key "hwo"', 'did you mean "how"?'),
    ("[[step]]\nsettle = '1s'\n«att» = '1s'", 'unknown key "att"', 'did you mean "at"?'),
    ("[[«step»]]\n", "there is no action", "a step has one action"),
    ("[[«step»]]\nid = 'x'", "there is no action", "a step has one action"),
    ("[[step]]\nsettle = '1s'\n«crash» = { node = 'b1' }", '"settle" and "crash" are two actions', "write [[step]]"),
    ("[[expect]]\n«alwais» = 'True'", 'unknown key "alwais"', 'did you mean "always"?'),
    ("[[«expect»]]\nbecause = 'x'", "there is no at or eventually or", "write one of them"),
    ("[[expect]]\nat_end = 'True'\n«always» = 'True'", '"always" and "at_end" exclude each other', ""),
    ("[cluster.disk]\n«fsinc» = '1ms'", 'unknown key "fsinc"', 'did you mean "fsync"?'),
    ("[cluster.clocks.«b9»]\noffset = '1s'", 'there is no server "b9"', ""),
    ("[cluster.clocks.b1]\n«ofset» = '1s'", 'unknown key "ofset"', 'did you mean "offset"?'),
    ("[cluster.guards]\n«fetch-epok» = false", 'there is no guard "fetch-epok"', 'did you mean "fetch-epoch"?'),
    ("[cluster]\nconfig = { «'broker.session.timout.ms'» = 1 }", "unknown cluster config", 'did you mean "broker.session.timeout.ms"?'),
    ("[cluster]\nconfig = { «'max.message.bytes'» = 99 }", "unknown cluster config", "this one stands in a topic's config"),
    ("[[topic]]\nname = 't'\nconfig = { «'broker.session.timeout.ms'» = 1 }", "unknown topic config", "this one stands in [cluster] config"),
    # Types: nothing is coerced.
    ("[cluster]\nbrokers = «'3'»", '"3" is no integer', "write 3 without quotes"),
    ("[cluster]\nbrokers = «3.0»", "3.0 is no integer", "write 3"),
    ("[cluster]\nbrokers = «true»", "true is no integer", "write a whole number"),
    ("[cluster]\nbrokers = «[3]»", "a list of 1 is no integer", ""),
    ("[cluster]\neligible_leader_replicas = «1»", "1 is neither true nor false", ""),
    ("[cluster]\neligible_leader_replicas = «'true'»", '"true" is neither true nor false', ""),
    ("[cluster]\nguards = «3»", "3 is no table", ""),
    ("[cluster]\nguards = { fetch-epoch = «0» }", "0 is neither true nor false", ""),
    ("title = «3»", "3 is no text", "write it in quotes"),
    ("seed = «1.0»", "1.0 is no integer", ""),
    ("seed = «inf»", "inf is no integer", ""),
    ("seed = «1979-05-27»", "a date or time is no integer", ""),
    ("[[step]]\nat = «3»\nsettle = '1s'", "3 is no duration", 'numbers need a unit and quotes: "3s"'),
    ("[[step]]\nsettle = «2»", "2 is no duration", 'numbers need a unit and quotes: "2s"'),
    ("[[step]]\nproduce = { to = 'orders-0', count = «'5'» }", '"5" is no integer', "write 5 without quotes"),
    ("[[step]]\nproduce = { to = 'orders-0', count = 1, acks = «1» }", "unknown value 1", 'write "1", in quotes'),
    ("[[step]]\nproduce = { to = 'orders-0', values = [«1», 'a'] }", "1 is no text", ""),
    ("[[step]]\nproduce = «'orders-0'»", '"orders-0" is no table', "write { key = value }"),
    ("[[step]]\ncrash = «'b1'»", '"b1" is no table', ""),
    ("step = «3»", '"step" is 3, not a list of tables', ""),
    ("[«step»]\nat = '1s'", '"step" is a table, not a list of tables', "write [[step]] above it"),
    ("step = [«3»]", "3 is no table", ""),
    ("cluster = «3»", "3 is no table", ""),
    ("[sweep]\nseeds = «'9..1'»", '"9..1" is out of range', ""),
    ("[sweep]\nseeds = «5»", "5 is no range of seeds", 'write "0..199"'),
    # Numbers that are too large.
    ("[cluster]\nbrokers = «101»", "101 is out of range", "allowed is 1..100"),
    ("[cluster]\nbrokers = «0»", "0 is out of range", ""),
    ("seed = «-1»", "-1 is out of range", ""),
    ("seed = «9223372036854775808»", "9223372036854775808 is out of range", ""),
    (f"seed = «0x{'f' * 99}»", "a number of more than 64 bits is out of range", ""),
    ("[[step]]\nproduce = { to = 'orders-0', count = «100001» }", "100001 is out of range", "allowed is 1..100000"),
    ("[[step]]\nproduce = { to = 'orders-0', count = «0» }", "0 is out of range", ""),
    ("[[step]]\nsettle = «'999h'»", '"999h" is out of range', "allowed is 1us to 24h"),
    ("[[step]]\nsettle = «'0s'»", '"0s" is out of range', ""),
    ("[cluster]\nconfig = { 'replica.lag.time.max.ms' = «99999999999999999999» }", "a number of more than 64 bits is out of range", ""),
    ("[[topic]]\nname = 't'\npartitions = «1001»", "1001 is out of range", ""),
    # Names.
    ("[[topic]]\nname = «'../x'»", '"../x" is no topic name', "allowed are 1 to 249"),
    ("[[topic]]\nname = «'..'»", '".." is no topic name', ""),
    ("[[topic]]\nname = «'a b'»", '"a b" is no topic name', ""),
    ("[[topic]]\nname = «'оrders'»", "is no topic name", "о is U+043E"),
    ("[[topic]]\nname = «'orders'»", 'topic "orders" is there twice: topic 1 has it already', ""),
    ("[[variant]]\nname = 'a b'\n[[variant]]\nname = «'A B'»", 'variant "A B" is there twice', ""),
    ("[[variant]]\nname = «'a/b'»", '"a/b" is no name', ""),
    ("[[variant]]\nname = «\"a\\u0000\"»", '"a\\x00" is no name', ""),
    ("title = «\"\\u001b[31m\"»", "has a character that cannot be shown", "take U+001B out"),
    ("[[step]]\nid = 'x'\nsettle = '1s'\n[[step]]\nid = «'x'»\nsettle = '1s'", 'id "x" is there twice: step 1', ""),
    ("[[step]]\nid = «'a b'»\nsettle = '1s'", '"a b" is no id', ""),
    ("[[step]]\nid = «'all'»\nsettle = '1s'", '"all" is no id', ""),
    ("[[step]]\nproduce = { to = 'orders-0', count = 1, client = «'b1'» }", '"b1" is no name for a client', ""),
    ("[[step]]\nproduce = { to = 'orders-0', count = 1, client = «'admin'» }", '"admin" is no name for a client', ""),
    ("[[step]]\nproduce = { to = 'orders-0', count = 1, client = «'not'» }", '"not" is no name for a client', ""),
    (PRODUCE + "[[step]]\nconsume = { from = 'orders-0', count = 1, client = «'p1'» }", '"p1" is the producer of step 1 already', ""),
    ("[[workload]]\nname = 'p1'\nkind = 'producer'\ntopic = 'orders'\nrate = 5\n[[step]]\nproduce = «{ to = 'orders-0', count = 1 }»", '"p1" is the producer workload of workload 1 already', "give one of them another name"),
    # Partitions, nodes, selectors.
    ("[[step]]\nproduce = { to = «'order-0'», count = 1 }", 'there is no partition "order-0"', 'did you mean "orders-0"?'),
    ("[[step]]\nproduce = { to = «'order'», count = 1 }", 'there is no topic "order"', 'did you mean "orders"?'),
    ("[[step]]\nproduce = { to = «'orders-1'», count = 1 }", "orders has one partition", ""),
    ("[[step]]\nconsume = { from = «'orders'», count = 1 }", '"orders" names no partition', 'write topic and number: "orders-0"'),
    ("[[step]]\nstart = «'b4'»", 'there is no node "b4"', "brokers are b1 to b3"),
    ("[[step]]\ncrash = { node = «'p9'» }", 'there is no node "p9"', ""),
    (PRODUCE + "[[step]]\ncrash = { node = «'p1'» }", '"p1" is a client', ""),
    ("[[step]]\ncrash = { node = 'leader:«orders-7»' }", "orders has one partition", ""),
    ("[[step]]\nflush = ['b1', «'b1'»]", '"b1" is there twice', ""),
    ("[[step]]\nflush = ['b1', «'b7'»]", 'there is no node "b7"', ""),
    ("[[step]]\nflush = «[]»", "an empty list", "allowed are 1 to 100 nodes"),
    ("[[step]]\npartition = «[['b1']]»", "a list of 1", "allowed are 2 to 100 groups"),
    ("[[step]]\npartition = [['b1'], [«'b1'», 'b2']]", '"b1" is in two groups', ""),
    ("[[step]]\npartition = [['b1'], «'b2'»]", '"b2" is no list of nodes', ""),
    ("[[topic]]\nname = 't'\nreplicas = [['b1', «'b9'»]]", 'there is no broker "b9"', ""),
    ("[[topic]]\nname = 't'\nreplicas = [['b1', «'b1'»]]", '"b1" is there twice', ""),
    ("[[topic]]\nname = 't'\nreplicas = [['b1', 'b2'], «['b1']»]", "this partition has 1 replicas, the first one 2", ""),
    ("[[topic]]\nname = 't'\nreplicas = [«'b1'», 'b2']", '"b1" is no list of brokers', ""),
    ("[[topic]]\nname = 't'\nreplicas = [['b1']]\n«partitions» = 2", '"partitions" and "replicas" exclude each other', ""),
    ("[[topic]]\nname = 't'\nreplication = «4»", "4 replicas need 4 brokers, there are 3", ""),
    ("[[topic]]\nname = 't'\nconfig = { 'min.insync.replicas' = «0» }", "0 is refused", "min.insync.replicas is 0"),
    ("[[topic]]\nname = 't'\nconfig = { 'min.insync.replicas' = «1.5» }", "1.5 is no value", ""),
    ("[[topic]]\nname = 't'\nconfig = { 'unclean.leader.election.enable' = «'yes'» }", '"yes" is refused', ""),
    # Times.
    ("[[step]]\nat = '3s'\nsettle = '1s'\n[[step]]\nat = «'2s'»\nsettle = '1s'", '"2s" is before step 1, at 3s', ""),
    ("[[step]]\nat = «'21s'»\nsettle = '1s'", '"21s" is beyond the end of the run', "until is 20s"),
    ("[[expect]]\nat = «'21s'»\nthat = 'True'", '"21s" is beyond the end of the run', ""),
    ("[[expect]]\nalways = 'True'\nto = «'21s'»", '"21s" is beyond the end of the run', ""),
    ("[[expect]]\nalways = 'True'\nfrom = '9s'\nto = «'8s'»", "the window ends before it begins", ""),
    ("[[expect]]\nalways = 'True'\nafter = '1s'\n«from» = '2s'", '"from" and "after" exclude each other', ""),
    ("[[expect]]\nalways = 'True'\nwithin = '1s'\n«to» = '2s'", '"to" and "within" exclude each other', ""),
    ("[[expect]]\nat_end = 'True'\n«within» = '8s'", '"within" goes with eventually or always, not with at_end', ""),
    ("[[expect]]\nat_end = 'True'\n«that» = 'True'", '"that" goes with at, not with at_end', ""),
    ("[[«expect»]]\nat = '1s'", 'there is no "that"', ""),
    ("[[step]]\nat = '1s'\n«after» = 'x'\nsettle = '1s'\nid = 'x'", '"at" and "after" exclude each other', ""),
    ("[[step]]\n«delay» = '1s'\nsettle = '1s'", '"delay" goes with "after"', ""),
    ("[[step]]\nafter = «'y'»\nsettle = '1s'", 'there is no step or fault "y"', ""),
    ("[[step]]\nafter = «'x'»\nsettle = '1s'\n[[step]]\nid = 'x'\nsettle = '1s'", 'step 2 ("x") comes later', ""),
    ("[[step]]\nid = 'x'\nafter = «'x'»\nsettle = '1s'", "a step does not come after itself", ""),
    ("[[step]]\nsettle = '1s'\n«within» = '1s'", '"within" goes with wait', 'settle = "2s" has its limit itself'),
    ("[[expect]]\nafter = «'y'»\nalways = 'True'", 'there is no step or fault "y"', ""),
    ("[[expect]]\nafter = «'3x'»\nalways = 'True'", '"3x" is no duration', ""),
    # Steps that cannot act.
    ("[[step]]\nheal = «'lag'»", 'there is no fault "lag"', ""),
    (CUT + "[[step]]\nheal = «'lga'»", 'there is no fault "lga"', 'did you mean "lag"?'),
    ("[[step]]\nheal = «'lag'»\n" + CUT, 'step 2 ("lag") begins this fault later', ""),
    (CUT + "[[step]]\nheal = 'lag'\n[[step]]\nheal = «'lag'»", "step 2 has healed it already", ""),
    (CUT + "[[step]]\nheal = 'all'\n[[step]]\nheal = ['lag']", "step 2 has healed it already", ""),
    (CUT + "[[step]]\nheal = ['lag', «'all'»]", '"all" stands alone', ""),
    ("[[step]]\nid = 'k'\ncrash = { node = 'b1' }\n[[step]]\nheal = «'k'»", 'step 1 ("k") begins no fault: crash cannot be healed', "write start"),
    ("[[step]]\ncrash = { node = 'b1' }\n[[step]]\ncrash = { node = «'b1'» }", "b1 is down already", ""),
    ("[[step]]\ncrash = { node = 'b1', how = 'power' }\n[[step]]\ncrash = { node = «'b1'», how = 'power' }", "b1 is off already", ""),
    ("[[step]]\nstart = «'b1'»", "b1 runs already", ""),
    ("[[fault]]\nid = 'f'\nkind = 'failpoint'\ntarget = 'b1'\nstart = '1s'\npoint = 'disk:write_at:.log'\naction = «'pause'»", 'at a call of the disk "pause" is not possible', ""),
    ("[[fault]]\nid = 'f'\nkind = 'failpoint'\ntarget = 'b1'\nstart = '1s'\npoint = 'fetch-read'\naction = 'power'\n«duration» = '1s'", "it is the length of a pause or yield", ""),
    ("[[step]]\nstart = ['c1', 'b1']", "c1 runs already", ""),
    ("[[step]]\npause = 'b1'\n[[step]]\npause = «'b1'»", "b1 is paused already", ""),
    ("[[step]]\nresume = «'b1'»", "b1 is running, not paused", ""),
    ("[[step]]\ncrash = { node = 'b1' }\n[[step]]\nshutdown = «'b1'»", "b1 is down already", ""),
    ("[[step]]\ncrash = { node = 'controller' }\n[[step]]\ncrash = { node = «'c1'» }", "c1 is down already", ""),
    ("[[step]]\ncreate_topic = { name = «'orders'» }", 'topic "orders" is there already', ""),
    ("[[step]]\ndelete_topic = «'new'»\n[[step]]\ncreate_topic = { name = 'new' }", 'topic "new" is not there yet', ""),
    ("[[step]]\ndelete_topic = «'new'»", 'there is no topic "new"', ""),
    ("[[step]]\nstart = { node = 'b1', disk = 'image:«x»' }", 'there is no step "x"', ""),
    ("[[step]]\ncrash = { node = 'b1' }\n[[step]]\nstart = { node = 'b1', disk = «'image:x'» }\n[[step]]\nid = 'x'\nsettle = '1s'", "step 3 is not done then", ""),
    # Parameters of actions.
    ("[[step]]\nproduce = «{ to = 'orders-0' }»", "it sends nothing", "write count, values or keys"),
    ("[[step]]\nproduce = { to = 'orders-0', «count» = 1, values = ['a'] }", '"count" and "values" exclude each other', ""),
    ("[[step]]\nproduce = { to = 'orders-0', values = ['a'], keys = «['a', 'b']» }", "there are 1 values and 2 keys", ""),
    ("[[step]]\nproduce = { to = 'orders-0', count = 1, acks = '1', idempotence = «true» }", 'idempotence needs acks = "all", not "1"', ""),
    ("[[step]]\nproduce = { to = 'orders-0', count = 1, timeout = «'1.5ms'» }", '"1.5ms" is too fine', ""),
    ("[[step]]\nproduce = «{ count = 1 }»", 'there is no "to"', ""),
    ("[[step]]\nconsume = { from = 'orders-0', count = 1, offset = «'first'» }", '"first" is no offset', ""),
    ("[[step]]\ncrash = { node = 'b1', how = «'kill'» }", 'unknown value "kill"', ""),
    ("[[step]]\ncrash = { node = 'b1', image = «'kept'» }", "an image is what a power loss leaves", 'write how = "power"'),
    ("[[step]]\ncrash = { node = 'b1', «hit» = 2 }", "hit counts arrivals at at_failpoint", ""),
    ("[[step]]\ncrash = { node = 'b1', at_failpoint = «'produce-apended'» }", 'unknown failpoint "produce-apended"', 'did you mean "produce-appended"?'),
    ("[[step]]\ncrash = { node = 'b1', at_failpoint = 'disk:«fsync»:.log' }", 'unknown disk call "fsync"', 'did you mean "fsync_dir"?'),
    ("[[step]]\ncrash = { node = 'b1', at_failpoint = 'disk:«apend»:.log' }", 'unknown disk call "apend"', 'did you mean "append"?'),
    ("[[step]]\ncut = { from = 'b1', to = 'b2', only = [«'Fech'»] }", 'unknown value "Fech"', 'did you mean "Fetch"?'),
    ("[[step]]\ncut = { from = 'b1', to = 'b2', in_flight = «'lose'» }", 'unknown value "lose"', ""),
    ("[[step]]\ncut = «{ from = 'b1' }»", 'there is no "to"', ""),
    ("[[step]]\nelect = { partition = 'orders-0', to = «'majority'» }", '"majority" may name several nodes', ""),
    ("[[step]]\nelect = { partition = 'orders-0', kind = 'unclean', to = «'controller'» }", "the controller leads no partition", "name a broker"),
    ("[[step]]\nelect = { partition = 'orders-0', kind = 'unclean', to = «'c1'» }", "the controller leads no partition", "name a broker"),
    ("[[step]]\nelect = { partition = 'orders-0', force = «true» }", "only an unclean election can be forced", ""),
    ("[[step]]\nreassign = «{ partition = 'orders-0' }»", "there is no replicas or cancel", ""),
    ("[[step]]\nreassign = { partition = 'orders-0', replicas = ['b1'], «cancel» = true }", '"cancel" and "replicas" exclude each other', ""),
    ("[[step]]\nconfig = «{ set = { 'retention.ms' = 1 } }»", "there is no topic or node", ""),
    ("[[step]]\nconfig = { topic = 'orders', set = { «'retention.mss'» = 1 } }", "unknown topic config", ""),
    ("[[step]]\nconfig = { topic = 'orders', set = «{}» }", "it changes nothing", ""),
    ("[[step]]\nconfig = { node = 'b1', set = { «'retention.ms'» = 1 } }", '"retention.ms" is no configuration of a broker', ""),
    ("[[step]]\nconfig = { topic = 'orders', set = { «'replica.lag.time.max.ms'» = 1 } }", '"replica.lag.time.max.ms" is no configuration of a topic', ""),
    ("[[step]]\nconfig = { node = 'b1', set = { 'replica.lag.time.max.ms' = «'x'» } }", '"x" is no integer', ""),
    ("[[step]]\ncrash = { node = 'b1' }\n[[step]]\nstart = { node = 'b1', disk = 'of:«b9»' }", 'there is no broker "b9"', ""),
    ("[[step]]\ncrash = { node = 'b1' }\n[[step]]\nstart = { node = 'b1', disk = «'of'» }", '"of" is no disk', ""),
    ("[[step]]\ndelete_records = { partition = 'orders-0', before = «-2» }", "-2 is out of range", ""),
    ("[[step]]\nslow = «{ node = 'b1' }»", "there is no disk or cpu or link", ""),
    ("[[step]]\nslow = { node = 'b1', disk = 2, «cpu» = 2 }", '"cpu" and "disk" exclude each other', ""),
    ("[[step]]\nslow = { node = 'b1', disk = «1.5» }", "1.5 is no factor", 'write a factor: 10, "1.5x"'),
    ("[[step]]\nslow = { node = 'b1', cpu = «'5ms'» }", '"5ms" is no factor', ""),
    ("[[step]]\ncorrupt = { node = 'b1', partition = 'orders-0', «file» = 'x' }", "file and byte stand together", ""),
    ("[[step]]\ncorrupt = { node = 'b1', partition = 'orders-0', file = «'../x'», byte = 1 }", "is no name of a file in the directory", ""),
    ("[[step]]\ncorrupt = { node = «'all'», partition = 'orders-0', offset = 1 }", '"all" may name several nodes', ""),
    ("[[step]]\nfill = { node = 'b1', free = «-1» }", "-1 is out of range", ""),
    ("[[step]]\nwait = «''»", "the expression is empty", ""),
    # Expectations.
    ("[[expect]]\nat_end = \"lost('acked') «=» 5\"", "'=' compares nothing; write '=='", ""),
    ("[[expect]]\nat_end = \"«leadr»('orders-0') == b1\"", 'unknown observable "leadr"', 'did you mean "leader"?'),
    ("[[expect]]\nbreaks = «'acked-record-survive'»", 'unknown value "acked-record-survive"', 'did you mean "acked-records-survive"?'),
    ("[[expect]]\nbreaks = «[]»", "an empty list", ""),
    ("[[expect]]\nallow = [«'L9'»]", 'there is no licence "L9"', ""),
    ("[[expect]]\nallow = { «L9» = 1 }", 'there is no licence "L9"', ""),
    ("[[expect]]\nallow = { L1 = «'some'» }", '"some" is no count', ""),
    ("[[expect]]\nat_end = 'True'\nvariant = «'x'»", 'there is no variant "x"', ""),
    # Workloads and faults.
    ("[[«workload»]]\nname = 'w'\nkind = 'producer'\ntopic = 'orders'", 'a producer needs a "rate"', ""),
    ("[[workload]]\nname = 'w'\nkind = 'consumer'\ntopic = 'orders'\n«rate» = 5", "a consumer reads what there is", ""),
    ("[[workload]]\nname = 'w'\nkind = 'producer'\ntopic = 'orders'\nrate = «'5/d'»", '"5/d" is no rate', ""),
    ("[[workload]]\nname = 'w'\nkind = 'consumer'\ntopic = 'orders'\n«batch» = 5", "a consumer has no batch", ""),
    ("[[workload]]\nname = 'w'\nkind = 'consumer'\ntopic = 'orders'\nstart = '2s'\nstop = «'1s'»", "it stops before it starts", ""),
    ("[[workload]]\nname = 'w'\nkind = «'prod'»\ntopic = 'orders'", 'unknown value "prod"', ""),
    ("[[fault]]\nid = 'f'\nkind = «'clogg'»\ntarget = 'b1'\nstart = '1s'", 'unknown kind of fault "clogg"', 'did you mean "clog"?'),
    ("[[«fault»]]\nid = 'f'\ntarget = 'b1'\nstart = '1s'", 'there is no "kind"', ""),
    ("[[fault]]\nid = 'f'\nkind = 'clog'\ntarget = 'b1'\nstart = '2s'\nend = «'1s'»", "it ends before it starts", ""),
    ("[[fault]]\nid = 'f'\nkind = 'clog'\ntarget = 'b1'\nstart = «'21s'»", "beyond the end of the run", ""),
    ("[[fault]]\nid = 'f'\nkind = 'clog'\ntarget = { from = «'b9'», «tu» = 'b1' }\nstart = '1s'", 'unknown key "tu"', ""),
    ("[[fault]]\nid = 'f'\nkind = 'clog'\ntarget = 'b1'\nstart = { when = \"hw('orders-0') «=» 1\" }", "'=' compares nothing", ""),
    ("[[fault]]\nid = 'f'\nkind = 'clog'\ntarget = 'b1'\nstart = { «wen» = '1s' }", 'unknown key "wen"', ""),
    ("[[fault]]\nid = 'f'\nkind = «'duplicate'»\ntarget = 'b1'\nstart = '1s'", "streams duplicate nothing", 'write network = "datagram"'),
    ("[[«fault»]]\nid = 'f'\nkind = 'metadata-lag'\ntarget = 'b1'\nstart = '1s'", "there is no records or skip", ""),
    ("[[fault]]\nid = 'f'\nkind = 'metadata-lag'\ntarget = 'b1'\nstart = '1s'\nskip = «false»", "it changes nothing", "write records"),
    ("[[fault]]\nid = 'f'\nkind = 'metadata-lag'\ntarget = «'controller'»\nstart = '1s'\nskip = true", "the controller asks for no metadata", "write a broker or client"),
    ("[[fault]]\nid = 'f'\nkind = 'metadata-lag'\ntarget = 'b1'\nstart = '1s'\nskip = true\n«records» = 1", '"records" and "skip" exclude each other', ""),
    ("[[fault]]\nid = 'f'\nkind = 'flap'\ntarget = 'b1'\nstart = '1s'\nperiod = '1s'\nduty_ppm = «1000000»", "links that are never whole do not flap", 'write kind = "cut"'),
    ("[[fault]]\nid = 'f'\nkind = 'swizzle'\ntarget = «'b1'»\nstart = '1s'\nperiod = '1s'", "there is no half of one node", "name two or more"),
    ("[[fault]]\nid = 'f'\nkind = 'swizzle'\ntarget = «['leader:orders-0']»\nstart = '1s'\nperiod = '1s'", "there is no half of one node", "name two or more"),
    ("[[fault]]\nid = 'f'\nkind = 'flap'\ntarget = 'b1'\nstart = '1s'\nperiod = «'1us'»", '"1us" is out of range', ""),
    ("[[fault]]\nid = 'f'\nkind = 'clock-strobe'\ntarget = 'b1'\nstart = '1s'\nperiod = '1s'\nby = «'0s'»", "it changes nothing", ""),
    ("[[fault]]\nid = 'f'\nkind = 'timer-jitter'\ntarget = 'b1'\nstart = '1s'\nppm = «100001»", "100001 is out of range", "allowed is 1..100000"),
    ("[[fault]]\nid = 'f'\nkind = «'write-back-fail'»\ntarget = 'b1'\nstart = '1s'", "the kernel writes nothing back here", 'write writeback = ["1s", "5s"] in [cluster]'),
    ("[[fault]]\nid = 'f'\nkind = 'short-read'\ntarget = 'b1'\nstart = '1s'\npartial_bytes = «0»", "0 is out of range", ""),
    ("[[fault]]\nid = 'f'\nkind = 'bit-rot'\ntarget = 'b1'\nstart = '1s'\npartition = 'orders-0'\n«byte» = 1", "byte is a position in a file", "write file"),
    ("[[fault]]\nid = 'f'\nkind = 'bit-rot'\ntarget = 'b1'\nstart = '1s'\npartition = 'orders-0'\noffset = 1\n«file» = 'x'", '"offset" and "file" exclude each other', ""),
    ("[[fault]]\nid = 'f'\nkind = 'bit-rot'\ntarget = 'b1'\nstart = '1s'\npartition = 'orders-0'\nbits = «9»", "9 is out of range", "allowed is 1..8"),
    ("[[fault]]\nid = 'f'\nkind = 'bad-sector'\ntarget = 'b1'\nstart = '1s'\npartition = 'orders-0'\nfile = «'../x'»", '"../x" is no name of a file', "write it without a path"),
    ("[[fault]]\nid = 'f'\nkind = 'eio'\ntarget = 'b1'\nstart = '1s'\ncall = «'renam'»", 'unknown value "renam"', 'did you mean "rename"?'),
    ("[[fault]]\nid = 'lag'\nkind = 'clog'\ntarget = 'b1'\nstart = '1s'\n" + CUT.replace('"lag"', "«'lag'»"), 'id "lag" is there twice: fault 1 has it already', ""),
    # Configurations that contradict themselves.
    ("[cluster]\nconfig = «{ 'broker.session.timeout.ms' = 3000 }»", "broker.session.timeout.ms is 3000, it must be more than twice broker.heartbeat.interval.ms (2000)", ""),
    ("[cluster]\nlatency = { base = ['2ms', «'x'»] }", '"x" is no duration', ""),
    ("[cluster]\nlatency = { base = «['2ms', '1ms']» }", "the range is upside down", 'write ["1ms", "2ms"]'),
    ("[cluster]\nwriteback = «'never'»", '"never" is no duration', ""),
    ("[cluster]\nwriteback = «5»", "5 is no range of durations", ""),
    ("[cluster]\nscheduler = «'random'»", 'unknown value "random"', ""),
    # Paths of variants.
    ("[[variant]]\nname = 'v'\nset = { «'clustr.brokers'» = 5 }", '"clustr.brokers" is no path', 'did you mean "cluster"?'),
    ("[[variant]]\nname = 'v'\nset = { «'cluster.broker'» = 5 }", 'unknown key "broker"', 'did you mean "brokers"?'),
    ("[[variant]]\nname = 'v'\nset = { «'topic.ordrs:retention.ms'» = 5 }", 'there is no topic "ordrs"', 'did you mean "orders"?'),
    ("[[variant]]\nname = 'v'\nset = { «'topic.orders'» = 5 }", '"topic.orders" has no Kafka key', ""),
    ("[[variant]]\nname = 'v'\nset = { «cluster».brokers = 5 }", '"cluster" is no path', 'paths stand in quotes: "cluster.brokers"'),
    ("[[variant]]\nname = 'v'\nset = { 'cluster.brokers' = «'5'» }", 'cluster.brokers: "5" is no integer', ""),
    ("[[variant]]\nname = 'v'\nset = { 'cluster.guards.fetch-epok' = «false» }", "there is no guard", ""),
    ("[[variant]]\nname = 'v'\nset = { 'topic.orders:retention.mss' = «5» }", "unknown topic config", ""),
    ("[[variant]]\nname = 'v'\nset = { «'workload.w.rate'» = 5 }", 'there is no [[workload]], and so no "w"', ""),
)  # fmt: skip


def marked(problem: Problem) -> str:
    return problem.source[problem.column - 1 : problem.column - 1 + problem.width]


@pytest.mark.parametrize(("text", "wanted", "hint"), ROWS, ids=[str(at) for at in range(len(ROWS))])
def test_a_mistake_is_told_where_it_is(text: str, wanted: str, hint: str) -> None:
    plain = text.replace("«", "").replace("»", "")
    # Keys of the top stand above the first table.
    is_top = not plain.startswith("[")
    whole = HEAD + plain + "\n" + TOPIC if is_top else BASE + plain
    found = problems(whole)
    matching = [each for each in found if wanted in each.text]
    assert matching, [each.text for each in found]
    first = matching[0]
    assert first.hint.startswith(hint)
    if "«" in text:
        before = text[: text.index("«")]
        line = whole[: whole.index(plain)].count("\n") + before.count("\n") + 1
        if text.count("«") == 1:
            assert (first.line, marked(first)) == (
                line,
                text[text.index("«") + 1 : text.index("»")],
            )
    rest = [each.text for each in found if each is not first]
    assert len(rest) <= 1, rest


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    text = """
[cluster]
brokers = "3"
trunkation = "fetch"
[[step]]
at = "1s"
produce = { to = "order-0", count = 1.5, akcs = "1" }
[[step]]
at = "2s"
krash = { node = "b1" }
[[step]]
heal = "lag"
[[expect]]
at_end = "leadr('orders-0') == b1 and hw('orders-0') == 'x'"
[[expect]]
breaks = ["nothing", "progress"]
"""
    assert said(text) == [
        '"3" is no integer',
        'unknown key "trunkation"',
        'there is no partition "order-0"',
        "1.5 is no integer",
        'unknown key "akcs"',
        'unknown action "krash"',
        'there is no fault "lag"',
        'unknown observable "leadr"',
        "a number never equals a text",
        'unknown value "nothing"',
    ]


def test_where_a_mistake_is() -> None:
    text = """
[cluster]
brokers = 0
[[step]]
at = "1s"
settle = 1
[[step]]
id = "two"
settle = 1
[[fault]]
id = "f"
kind = "clog"
target = "b1"
start = 1
[[expect]]
at_end = 1
"""
    assert [each.where for each in problems(BASE + text)] == [
        "[cluster]",
        "step 1, at 1s",
        'step 2 "two"',
        'fault 1 "f"',
        "expect 1",
    ]


def test_a_mistake_of_a_declaration_is_told_once() -> None:
    """What is declared wrongly counts as declared."""
    text = (
        HEAD
        + '[cluster]\nbrokers = "x"\n'
        + '[[topic]]\nname = "orders"\nreplicas = 3\n'
        + '[[step]]\nid = "kill"\ncrash = { node = "b9", hwo = "power" }\n'
        + '[[expect]]\nafter = "kill"\nalways = "leader(\'orders-5\') == b7"\n'
    )
    assert [each.text for each in problems(text)] == [
        '"x" is no integer',
        "3 is no list of partitions",
        'unknown key "hwo"',
    ]


def test_missing_keys_of_the_head() -> None:
    texts = [each.text for each in problems("title = 'x'")]
    assert texts == ['there is no "schema"', 'there is no "name"', 'there is no "until"']
    (only,) = problems('schema = 2\nname = "x"\nuntil = "1s"')
    assert (only.text, only.hint) == ("2 is out of range", "allowed is 1..1")


def test_a_variant_says_in_which_variant_it_breaks_something() -> None:
    text = '[[variant]]\nname = "small"\nset = { "cluster.brokers" = 2 }\n'
    (found,) = problems(BASE + text)
    assert found.text == 'there is no broker "b3"'
    assert found.where == 'topic 1 "orders" (in variant "small")'
    assert found.line == 6


def test_what_cannot_be_known_before_a_run_is_no_mistake() -> None:
    read(
        """
[[step]]
at = "1s"
crash = { node = "leader:orders-0" }
[[step]]
at = "2s"
crash = { node = "b1" }
[[step]]
id = "x"
crash = { node = "b2", at_failpoint = "hw-advanced" }
[[step]]
start = "b2"
[[step]]
start = { node = "b1", disk = "image:x" }
[[step]]
at = "3s"
crash = { node = "b3" }
[[step]]
at = "3s"
crash = { node = "b3", how = "power" }
[[step]]
at = "4s"
start = "b3"
[[step]]
at = "4s"
shutdown = "b3"
[[step]]
at = "5s"
start = "b3"
"""
    )


@pytest.mark.parametrize(
    "before",
    [
        "[[step]]\nfill = { node = 'b1', free = 0 }\n",
        "[[step]]\ncorrupt = { node = 'b1', partition = 'orders-0', offset = 0 }\n",
        "[[fault]]\nid = 'f'\nkind = 'fill'\ntarget = 'b1'\nstart = '1s'\nfree = 0\n",
        "[[fault]]\nid = 'f'\nkind = 'fsync-fail'\ntarget = 'b1'\nstart = '1s'\n",
        "[[fault]]\nid = 'f'\nkind = 'enospc'\ntarget = 'b1'\nstart = '1s'\n",
    ],
)
def test_a_broker_may_have_halted_because_its_disk_failed_it(before: str) -> None:
    read(f"{before}[[step]]\nstart = 'b1'\n")


def test_a_thousand_mistakes_are_not_all_told() -> None:
    keys = "".join(f"key{at} = 1\n" for at in range(5_000))
    assert len(problems(HEAD + keys)) == REFUSALS_MAX
    steps = '[[step]]\nheal = "x"\n' * 1_900
    found = problems(BASE + steps)
    assert 100 <= len(found) <= 2_000
    (only,) = problems(BASE + "[[step]]\n" * 3_000)
    assert only.text == "there are more than 2000 of them"
