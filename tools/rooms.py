"""Groups the modules into rooms, in the order in which a newcomer should walk through them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Room:
    """A group of modules on the map: what it is called, what holds in it, and who lives there."""

    name: str
    sentence: str
    modules: tuple[str, ...]

    def has(self, path: str) -> bool:
        """Whether the module stands here: by its name, or by its folder."""
        return any(path.startswith(there) if there.endswith("/") else path == there
                   for there in self.modules)


def node(names: str) -> tuple[str, ...]:
    """Modules of `agent_node` by their bare names."""
    return tuple(f"agent_node/{name}.py" for name in names.split())


def hub(names: str) -> tuple[str, ...]:
    """Modules of `arc` by their bare names."""
    return tuple(f"arc/{name}.py" for name in names.split())


# A new module needs one word here; `tests/test_docs.py` says so when it is missing.
ROOMS = (
    Room("The contract",
         "What a task, a command and an answer are. Pure: no disk, no clock, no process.",
         node("__init__ task fields spec strict retries commands queries narrowing moves wire"
              " errors ulid reports guessing readiness references newborn graphs graph_names"
              " graph_document graph_drafts graph_faults movability graph_words validation"
              " schemas patterns standing unknown_fields takeover"
              " priority budget budget_words artifact_words compact deadlines output_hash")),
    Room("The store",
         "One SQLite file, one connection that writes, one durable transaction for each command.",
         ("agent_node/store/",)),
    Room("The home and its settings",
         "The node's folder, its lock, its clock and its node.toml.",
         node("home author plain_files mounts config stand_in new_toml toml_table toml_lines clock"
              " failpoints wreck log artifacts uploads removal")),
    Room("Running an attempt",
         "From a claimed task to its verdict. Nothing in here knows of the queue.",
         ("agent_node/executors/",
          *node("attempts spare_folder job zygote zygote_link handing kept kit shim watching"
                " output killing processes traces cgroups evidence verdicts answers"
                " other_evidence other_user own_code becoming workplace speaking warden rousing"
                " judge gathering belongings named_files porter carrying"))),
    Room("The daemon",
         "One thread, one loop: take, run, record, report, and wait until something happens.",
         node("running open_files daemon dispatch given floor arrivals starters shims runs endings"
              " results adoption leaving drains signals timers passing upkeep beating validating"
              " strays report status rubbish news stopping errands wardens capabilities"
              " baggage missing")),
    Room("The wire",
         "One JSON object a line, from a hub or from a command, and one answer for each.",
         node("handover serve relay door opening listener binding conversation lines requests"
              " replies desk looks inquiries orders budget_orders graph_orders graph_reply"
              " artifact_orders transfers ownership attempt_words logs")),
    Room("Upgrading",
         "A signed program takes the place of the one that runs, and gives it back if it must.",
         node("signing statement upgrading upgrade_record upgrader trial program apart starting"
              " daemon_log")),
    Room("The commands",
         "What people type. A command speaks to the node through its door, as a hub does.",
         ("agent_node/cli/",
          *node("__main__ envelope text stood doctor checks agent_checks clock_checks"
                " standing_streams account systemd packing"))),
    Room("The sensors",
         "The story of each: look, decide, act. Read these first.",
         ("sensors/", *hub("sensor"))),
    Room("The hub looks",
         "Reaching the nodes, and laying side by side what they say and what they do not.",
         ("arc/links/", *hub("asking moved graph_answers survey unseen displaced lateness looking"
                           " remembering looking_up circling unfound lost_files replaced queues"
                          " tally beside"))),
    Room("The hub decides",
         "Pure: a frozen view and limits become a plan, and every refusal in it is explained.",
         ("arc/decisions/", *hub("planning"))),
    Room("The hub acts and remembers",
         "Carrying out moves in steps that may be repeated; what was seen, decided and moved.",
         hub("transfer telling owing stood settling endings fencing reowning durable fences lease"
             " journal journal_disk journal_tables journal_nodes journal_ends journal_outbox"
             " journal_runs journal_words journal_ties journal_lives journal_ahead steady outbox"
             " leaving custody forgetting"
             " doubted entitling settlements graph_cancels artifacts bringing"
             " journal_work journal_notices journal_deliveries adding polling dead_answers"
             " delivering apart"
             " journal_tallies journal_history journal_samples history history_file"
             " history_rows history_seen history_shares history_slots log_lines")),
    Room("The hub itself",
         "Its settings, its time, and how its parts are put together.",
         hub("__init__ __main__ errors settings schedule hub running quitting exhausted fuse"
             " allowance listening keys setup upgrade_package unit")),
    Room("fleet.yaml",
         "Read with every fault named by its line, checked, explained, and edited in place.",
         hub("config config_kinds config_model config_sources config_settings config_work"
             " config_words config_keys config_faults config_work_faults"
             " config_amounts config_check marked_yaml plain_yaml splicing findings durations"
             " editing explaining")),
    Room("What may be asked of a hub",
         "One operation for each question or order; the same with a hub running and without.",
         ("arc/operations/", *hub("reception door"))),
    Room("Joining",
         "A machine joins or leaves: by the operator's own login, in steps that may be repeated.",
         ("arc/joining/",)),
    Room("The operator's commands",
         "What people type at the hub, and what they read.",
         ("arc/cli/", "arc/text/")),
    Room("The page",
         "A process of its own beside the hub: it asks, it reads, and guards stand before it.",
         ("arc/web/", "arc/report/", *hub("secret_files socket_paths"))),
    Room("The simulator",
         "What other limits would have come to, by the product's own planner on a virtual clock.",
         ("arc/simulate/",)),
    Room("The demo", "A fleet on one machine, over real SSH.", ("arc/demo/",)),
)


def room_of(path: str) -> Room | None:
    """The room of a module; None: nobody has given it one."""
    return next((room for room in ROOMS if room.has(path)), None)
