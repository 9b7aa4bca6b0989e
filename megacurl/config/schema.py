# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The settings of a run: frozen dataclasses, the only source of flags, YAML keys and defaults.

Every field is one flat flag (``--lr``, ``--tensor-model-parallel-size``), so a field name occurs
once in the whole file. Names are Megatron's where Megatron has the setting. The docstring under a
field is its ``--help`` text. Algorithm defaults here are CVPO's; other presets live in
``presets.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

OffloadMode = Literal["none", "optimizer", "all"]


@dataclass(frozen=True)
class ModelConfig:
    """Which model is trained, and in which precision."""

    hf_checkpoint: str = ""
    """Hugging Face folder of the policy (config.json, safetensors, tokenizer), also its shape."""
    critic_hf_checkpoint: str | None = None
    """HF folder that the critic's trunk starts from; default: the policy's."""
    bf16: bool = False
    """Train in bfloat16 with fp32 main weights and gradients; default is fp32."""
    transformer_impl: Literal["auto", "local", "transformer_engine"] = "auto"
    """Layer implementation. auto: Transformer Engine on a GPU that has it installed, else local."""
    make_vocab_size_divisible_by: int = 128
    """Vocabulary padding: its rows are a multiple of this times the tensor parallel size."""
    critic_head_init_std: float = 0.0
    """Standard deviation of the value head's initial weights; 0 starts from V = 0 everywhere."""


@dataclass(frozen=True)
class ParallelConfig:
    """How actor and critic are spread over the ranks; data parallelism takes what is left."""

    tensor_model_parallel_size: int = 1
    """Ranks that share every layer's matrices."""
    pipeline_model_parallel_size: int = 1
    """Ranks that share the stack of layers."""
    num_layers_per_virtual_pipeline_stage: int | None = None
    """Interleaved pipeline: a rank holds several chunks of this many layers; smaller bubbles."""
    sequence_parallel: bool = False
    """Split norms and residuals too (along the sequence, over the tensor parallel ranks)."""
    use_distributed_optimizer: bool = True
    """Shard optimizer state over the data parallel ranks."""
    recompute_granularity: Literal["none", "selective", "full"] = "none"
    """Activations recomputed in backward; selective: core attention, full: whole layers."""
    recompute_method: Literal["uniform", "block"] = "uniform"
    """What full recomputation checkpoints: groups of layers (uniform) or the first ones (block)."""
    recompute_num_layers: int = 1
    """Layers of full recomputation: per checkpointed group (uniform) or per stage (block)."""
    offload: OffloadMode = "none"
    """What leaves the GPU while another model works: optimizer state, or all (to host memory)."""
    distributed_timeout_minutes: int = 30
    """Longest wait in a collective; then the run ends with an error."""


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW, schedule and clipping; the critic differs only where a --critic flag says so."""

    lr: float = 1e-6
    """Peak learning rate of the actor."""
    critic_lr: float = 2e-6
    """Peak learning rate of the critic."""
    min_lr: float = 0.0
    """Learning rate at the end of the decay."""
    lr_decay_style: Literal["constant", "linear", "cosine"] = "constant"
    """Shape of the schedule after warm-up."""
    lr_warmup_iters: int = 0
    """Optimizer steps of linear warm-up."""
    lr_decay_iters: int | None = None
    """Optimizer steps over which to decay; default: those of the whole run."""
    weight_decay: float = 0.01
    """Decoupled weight decay."""
    adam_beta1: float = 0.9
    """First moment decay."""
    adam_beta2: float = 0.95
    """Second moment decay."""
    adam_eps: float = 1e-8
    """Adam's epsilon."""
    clip_grad: float = 1.0
    """Largest global gradient norm; above it gradients are scaled down, 0 turns clipping off."""


@dataclass(frozen=True)
class TrainingConfig:
    """Batch arithmetic and length of the run."""

    train_iters: int = 500
    """Steps of the loop: one step is one rollout and its updates."""
    rollout_batch_size: int = 256
    """Prompts per step."""
    n_samples_per_prompt: int = 16
    """Responses sampled for every prompt."""
    global_batch_size: int | None = None
    """Responses per actor optimizer step; default: a rollout by --updates-per-rollout."""
    critic_global_batch_size: int | None = None
    """Responses per critic optimizer step; default: by --critic-updates-per-rollout."""
    updates_per_rollout: int = 1
    """Actor optimizer steps a rollout; --global-batch-size, if given, wins over it."""
    critic_updates_per_rollout: int | None = None
    """Critic optimizer steps a rollout; default: as many as the actor."""
    ppo_epochs: int = 1
    """Passes of the actor over a rollout."""
    critic_epochs: int = 1
    """Passes of the critic over a rollout."""
    max_tokens_per_micro_batch: int = 16384
    """Prompt and response tokens of one forward pass (packed, on a data parallel rank)."""
    log_prob_chunk_size: int = 2048
    """Tokens whose logits are held in fp32 at once (for log-probs and entropy)."""
    seed: int = 1234
    """Seed of data order, sampling and initialisation."""


@dataclass(frozen=True)
class AlgorithmConfig:
    """Advantages, targets and losses."""

    algorithm: str = "cvpo"
    """Preset whose numbers the other flags override."""
    use_critic: bool = True
    """Train a critic beside the policy; without one nothing of it is built, stored or logged."""
    advantage_estimator: str = "gae"
    """How advantages are estimated: gae (from the critic), grpo or rloo (from the group)."""
    gamma: float = 1.0
    """Discount."""
    length_adaptive_alpha: float | None = 0.17
    """Actor lambda of an l-token response is 1 - 1/(alpha l) (VAPO); None takes --lam-policy."""
    lam_policy: float = 0.95
    """GAE lambda of the actor where it is not length-adaptive."""
    lam_critic: float = 0.1
    """GAE lambda of the critic's targets. CVPO prints 0.1; 1.0 gives Monte-Carlo returns (VAPO)."""
    grpo_std: Literal["sample", "population", "none"] = "sample"
    """Deviation by which grpo divides: the group's sample or population one; none is Dr. GRPO."""
    grpo_eps: float = 1e-6
    """Added to that deviation."""
    whiten_advantages: Literal["off", "sample", "population"] = "off"
    """Normalise advantages over the batch (by the sample or the population variance)."""
    masked_reward: Literal["error", "drop", "carry"] = "error"
    """Reward on a token the policy did not sample: refuse, drop, or move to the token before."""
    truncation: Literal["terminal", "bootstrap"] = "terminal"
    """End of a response that the length limit cut: value 0, or the critic's value there."""
    overlong_filter: bool = False
    """Take truncated responses out of every loss (DAPO)."""
    reward_correct: float = 1.0
    """Reward of a correct response."""
    reward_wrong: float = -1.0
    """Reward of a wrong one; that of a graded response lies between, in proportion to its score."""
    reward_truncated: float | None = None
    """Reward of a truncated response whatever its answer (ORZ: 0); None judges it as any other."""
    overlong_penalty: float = 0.0
    """Reward lost at the length limit, and less before it; 0 is off (DAPO: 1)."""
    overlong_buffer: int | None = None
    """Tokens before the limit where that begins; default: a fifth of it (DAPO: 4096 of 20480)."""
    rollout_correction: Literal["auto", "decoupled", "behavior", "recompute"] = "auto"
    """Treatment of older responses; auto is decoupled with --rollout-lag 1, else recompute."""
    tis_cap: float = 2.0
    """Largest weight old/behaviour of a token with decoupled (truncated importance sampling)."""
    ratio_level: Literal["token", "sequence"] = "token"
    """What is clipped: each token's ratio, or its geometric mean over a response (GSPO)."""
    eps_clip: float = 0.2
    """Lower clip range of the probability ratio."""
    eps_clip_high: float = 0.28
    """Upper clip range (clip-higher)."""
    dual_clip: float | None = None
    """Bound on the loss at negative advantages (dual-clip PPO); None is off."""
    value_clip: float | None = None
    """Clip range of the value around its old estimate; None is off."""
    loss_agg_mode: Literal[
        "token-mean",
        "seq-mean-token-mean",
        "seq-mean-token-sum",
        "seq-mean-token-sum-norm",
        "token-sum-norm",
        "prompt-mean-token-mean",
    ] = "token-mean"
    """How token losses are averaged (always over the global mini-batch)."""
    positive_lm_coef: float = 0.1
    """Weight of the language-model loss on correct responses (VAPO Eq. 9)."""
    positive_lm_weighted: bool = False
    """Apply CVPO's weights to that loss too."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus."""
    kl_coef: float = 0.0
    """Weight of the KL penalty to the initial policy; above 0 a reference model is kept."""
    kl_estimator: Literal["k1", "k2", "k3"] = "k1"
    """Estimator of the KL penalty."""
    kl_placement: Literal["reward", "loss"] = "reward"
    """Where the KL penalty goes: off the token rewards (PPO), or onto the loss."""
    critic_warmup_iters: int = 21
    """First steps that train the critic alone (on Monte-Carlo returns)."""
    critic_warmup_stop: Literal["iters", "criterion"] = "iters"
    """What ends the critic's warm-up: its steps, or earlier the criterion of the flags below."""
    critic_warmup_min_iters: int = 0
    """Least warm-up steps before the criterion may end it."""
    critic_warmup_mse_below: float = 1.0
    """Criterion: mean squared error of the values below this (with rewards of +-1, V=0 gives 1)."""
    critic_warmup_ev_above: float = 0.0
    """Criterion: explained variance above this."""


@dataclass(frozen=True)
class CVPOConfig:
    """CVPO's weights: W_S by the spread of a response's values, W_D by a question's accuracy."""

    use_w_s: bool = True
    """Weigh advantages by the value spread of the response (W_S)."""
    use_w_d: bool = True
    """Weigh advantages by the difficulty of the question (W_D)."""
    normalize_w: bool = False
    """Divide the weights by their mean over the batch; so they do not change the step size."""
    variance_coefficient: float = 0.3
    """Amplitude of W_S: alpha_P = alpha_N, where they are not given separately."""
    ws_alpha_p: float | None = None
    """W_S amplitude for correct responses."""
    ws_alpha_n: float | None = None
    """W_S amplitude for wrong responses; at most 1, else the weight could turn negative."""
    ws_lambda_p: float = 50.0
    """W_S steepness for correct responses."""
    ws_lambda_n: float = 50.0
    """W_S steepness for wrong responses."""
    ws_outcome: Literal["correct", "score"] = "correct"
    """What W_S goes by: right or wrong, or a grade in between, which mixes Eq. 15 and 16."""
    ws_direction: Literal["equation", "prose"] = "equation"
    """Sign of W_S: as the paper's Eq. 15/16 write it, or as its prose does."""
    ws_stat: Literal["std", "var"] = "std"
    """Spread of a response's values: standard deviation or variance."""
    ws_ddof: Literal[0, 1] = 0
    """0: population statistic, 1: sample statistic."""
    ws_mu: Literal["group", "group_by_outcome", "batch"] = "group"
    """Responses over which the mean spread is taken."""
    ws_scale: Literal["raw", "relative"] = "raw"
    """How the spread is compared with its mean: by difference, or by difference relative to it."""
    wd_early: tuple[float, float, float, float] = (1.6, -0.2, 2.0, 1.2)
    """k1, c1, k2, c2 of Eq. 25."""
    wd_bottleneck: tuple[float, float, float, float] = (4.1, -0.1, 2.0, 0.9)
    """k1', c1', k2', c2' of Eq. 26."""
    wd_rho: Literal["latest", "posterior", "previous", "ema"] = "latest"
    """Accuracy that W_D sees: this round's, the posterior mean, last round's, or an average."""
    wd_ema: float = 0.5
    """Weight of the past in the moving average."""
    beta_prior: tuple[float, float] = (1.0, 1.0)
    """Beta prior of a question's accuracy."""
    beta_decay: float = 1.0
    """Forgetting of earlier counts towards the prior; 1 keeps them all."""
    trend_scope: Literal["sampled", "tracked"] = "sampled"
    """Questions of the trend test: those of this round seen before, or all tracked ones."""
    trend_aggregate: Literal["mean", "all", "frac"] = "mean"
    """How many questions must be stagnant: their mean change, all, or a fraction."""
    trend_frac: float = 0.9
    """Fraction of questions that must be stagnant; with --trend-aggregate frac."""
    trend_empty: Literal["false", "true"] = "false"
    """Whether no hard or no easy question counts as stagnant."""
    trend_low: float = 0.3
    """Questions at or below this posterior mean are hard."""
    trend_low_delta: float = 0.05
    """A hard question is stagnant below this change (relative, absolute value)."""
    trend_high: float = 0.8
    """Questions at or above this posterior mean are easy."""
    trend_high_delta: float = 0.03
    """An easy question is stagnant below this change (relative)."""
    phase_one_way: bool = True
    """The bottleneck phase never returns to the early one."""
    phase_patience: int = 1
    """Stagnant rounds in a row before the phase switches."""
    phase_min_round: int = 0
    """Rounds before which the phase never switches."""


@dataclass(frozen=True)
class SamplingConfig:
    """Which questions a step trains on."""

    sampling: str = "uniform"
    """Rule of the choice, uniform, dynamic or vcrl. dynamic is DAPO's."""
    dynamic_max_rounds: int = 10
    """Rollouts of a batch that dynamic may take to fill it; then it trains on what there is."""
    vcrl_kappa: tuple[float, float] = (0.3, 0.8)
    """Group variance to exceed, early and late in the run (VCRL)."""
    vcrl_kappa_switch: int = 20
    """Steps before the late threshold holds."""
    vcrl_momentum: float = 0.9
    """Weight of a replayed question's old priority."""
    vcrl_max_replays: int = 2
    """Replays after which a question leaves the bank."""
    vcrl_beta: Literal["variance", "staleness"] = "variance"
    """What moves a priority: the question's new variance, or the steps since its last use."""
    vcrl_bank_size: int | None = None
    """Questions that the bank holds; default: any number."""


@dataclass(frozen=True)
class RolloutConfig:
    """Generation of responses, and the weight sync that precedes it."""

    rollout_engine: str = "transformers"
    """Engine that generates."""
    rollout_lag: int = 0
    """Age of the responses in steps; 1 is single-step asynchronous training."""
    rollout_temperature: float = 1.0
    """Sampling temperature; log-probs and entropy of the trainer are at this temperature too."""
    rollout_top_p: float = 1.0
    """Nucleus sampling in training rollouts; below 1 it biases the ratio and is refused."""
    rollout_top_k: int = 0
    """Top-k in training rollouts; above 0 it biases the ratio and is refused."""
    rollout_max_prompt_len: int = 2048
    """Longest prompt; longer ones are dropped from the prompt set and counted."""
    rollout_max_response_len: int = 6144
    """Tokens after which a response is truncated."""
    rollout_max_batch_size: int = 256
    """Sequences that the engine of a rank decodes at once."""
    rollout_kv_cache_mb: int | None = None
    """Memory of the vLLM engine's KV cache; default: room for a full batch, at most 4096."""
    rollout_urls: tuple[str, ...] = ()
    """Running rollout servers, each as http://host:port; for engines whose name ends in -server."""
    rollout_launch: int = 0
    """Rollout servers to start here; they end with the run."""
    rollout_transfer_dir: str = "/dev/shm"
    """Folder that weights go through to servers; the trainer and they see it."""
    save_rollouts: str | None = None
    """Folder that receives every step's responses (with verdicts, one parquet file a step)."""
    replay_rollouts: str | None = None
    """Folder of saved responses to train on; none are generated then."""
    rollout_engine_sleep: bool = False
    """Between rollouts the trainer has the engine's memory."""
    sync_bucket_mb: int = 256
    """Size of a weight bucket; a larger tensor travels alone."""


@dataclass(frozen=True)
class DataConfig:
    """Questions and how their answers are judged."""

    prompt_data: str = ""
    """Training questions: published parquet, or jsonl; "file@[a:b]" takes a slice."""
    dedupe: Literal["id", "text", "none"] = "id"
    """What makes two questions the same: their id, their prompt text, or nothing."""
    conflicts: Literal["first", "drop", "error"] = "first"
    """What to do with a question that has several answers."""
    decontaminate: bool = False
    """Leave out questions that the evaluation asks too (in the same or nearly the same words)."""
    instruction: str | None = None
    """Text around every question; must contain {problem}."""
    apply_chat_template: bool = True
    """Use the tokenizer's chat template."""
    shuffle: bool = True
    """A new order of the questions in every epoch (from the seed)."""
    verifier: str = "math"
    """How a response is judged."""
    require_value: bool = False
    """Refuse an unevaluated expression ("4 + 3") as the answer where the truth is a number."""
    symbolic: bool = True
    """Compare expressions that differ as text by algebra (math-verify, in worker processes)."""
    correct_threshold: float | None = None
    """Score from which a graded response is correct; default: the verifier's own."""


@dataclass(frozen=True)
class EvalConfig:
    """Evaluation on benchmark files."""

    eval_prompt_data: tuple[str, ...] = ()
    """Benchmark files, each as path or name=path; "file@[a:b]" takes a slice."""
    eval_interval: int | None = None
    """Steps between evaluations; default: only before the first and after the last step."""
    skip_eval_before_train: bool = False
    """Do not evaluate the initial model."""
    n_samples_per_eval_prompt: int = 32
    """Responses per benchmark question (the k of avg@k)."""
    eval_temperature: float = 1.0
    """Sampling temperature of the evaluation."""
    eval_top_p: float = 0.7
    """Nucleus sampling of the evaluation (VAPO)."""
    eval_max_response_len: int | None = None
    """Tokens after which an evaluated response is truncated; default: as in training."""


@dataclass(frozen=True)
class RunConfig:
    """Where a run writes, what it resumes from, and what it reports."""

    run_dir: str = ""
    """Folder that receives everything the run writes."""
    load: str | None = None
    """Run folder or checkpoint to resume from."""
    save_interval: int | None = None
    """Steps between checkpoints; default: only after the last step."""
    keep_checkpoints: int = 2
    """Checkpoints kept; older ones are deleted after a newer one is complete."""
    export_hf: bool = True
    """At the end, write the policy as a Hugging Face folder."""
    tensorboard: bool = True
    """Write TensorBoard events."""
    wandb_project: str | None = None
    """Weights & Biases project; None turns it off."""


@dataclass(frozen=True)
class Config:
    """One run."""

    model: ModelConfig = field(default_factory=ModelConfig)
    parallel: ParallelConfig = field(default_factory=ParallelConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    algorithm: AlgorithmConfig = field(default_factory=AlgorithmConfig)
    cvpo: CVPOConfig = field(default_factory=CVPOConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    data: DataConfig = field(default_factory=DataConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    run: RunConfig = field(default_factory=RunConfig)
