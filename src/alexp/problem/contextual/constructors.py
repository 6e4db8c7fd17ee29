"""Classes of models for contextual rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from alexp.common.validation import count
from alexp.problem.contextual.crossed import Crossings, Unit
from alexp.problem.contextual.per_arm import CommonMap, PerArm, shared_features
from alexp.problem.contextual.sources import ContextFeatures, FeatureSet
from alexp.problem.from_tables import FromTables

if TYPE_CHECKING:
    from alexp.problem.contextual.domains import Arms

_MOST_MODELS = 256


class FromContexts(FromTables):
    """Constructors of `ModelClass` from features of contexts, arms and actions."""

    @classmethod
    def per_arm(
        cls,
        features: Mapping[str, FeatureSet],
        arms: int | Arms | Sequence[str],
        *,
        intercept: bool = True,
        shared: FeatureSet | None = None,
        common: CommonMap | None = None,
        example: object = None,
    ) -> Self:
        """One model per set of features of the context, with coefficients of their own for every arm.

        Model j says that the expected reward of arm a in context z is b_a + f_j(z)'theta_a: the disjoint linear models
        of LinUCB (Li et al. 2010), and with `common` the hybrid ones. For `alexp.Arms`.

        Parameters
        ----------
        features : {name: f}, where f is a list of places in the context vector; a list of keys of the context; a whole
            number d, for a context that has a vector of d numbers under the name; a callable f(context) -> (d,); or a
            fitted scikit-learn transformer, which sees the context as a table of one row. Code cannot be stored.
        arms : how many, their names, or the `Arms`.
        intercept : a constant for every arm, unpenalised. Rewards of arms have levels that no context explains.
        shared : features of the context, given like any of `features`, with one coefficient for all arms, in every
            model and practically unpenalised (their prior variance is 10,000 times that of others). They are the same
            for all arms of a round, so that they decide nothing; they explain how good a round is for all.
        common : a callable (context, names of arms) -> (K, q) whose features have coefficients common to all arms, in
            every model and penalised like the others: what is learned from one arm is then known of all. `arms` must
            be names.
        example : a context, a list or a table of contexts. Needed where features are code, for their sizes; ten
            contexts or more also tell prior scales, which otherwise come from the first rewards.

        Without `shared` and `common` arms have nothing in common, and the posterior is kept arm by arm. With them it is
        kept for all K p columns together: K times the time and memory per model.

        >>> from alexp.problem.models import ModelClass
        >>> models = ModelClass.per_arm({"clinical": [0, 1, 2], "genes": [3, 4]}, arms=3)
        >>> models.n_models, models.n_columns, models.arm_blocks
        (2, 18, (3, 6))
        """
        own, extra = ContextFeatures(features, example), shared_features(shared, example)
        dictionary = PerArm(own, arm_names(arms), bool(intercept), extra, common)
        return cls(dictionary, dictionary.groups, own.names_of_sets, intercept=intercept)

    @classmethod
    def crossed(
        cls,
        context: Sequence[str],
        action: Sequence[str],
        order: int = 2,
        *,
        units: Mapping[str, Unit] | None = None,
        intercept: bool = True,
        max_models: int = _MOST_MODELS,
    ) -> Self:
        """Which features of the context change what an action is worth: one model per set of crossings.

        Every model has the features of the action, those of the context (practically unpenalised: they are the same for
        all candidates of a round), and some products of different features, at least one of them the action's. Models
        are all sets of products, a product of three only with its products of two, if these are at most `max_models`:
        up to eight products for 256. Otherwise they are: none; all; those up to each order; all of context with action;
        all of one feature; one at a time; two at a time, as many as there is room for, in this order. The prior is
        uniform over the numbers of products, then over the sets with as many.

        Parameters
        ----------
        context, action : names of features. A context is a mapping or a vector of its features, candidates are an array
            (n, A), a list of mappings or a DataFrame.
        order : most factors of a product. A square is none: give dose^2 as a feature of its own if rewards bend.
        units : {name: scale} or {name: (centre, scale)}; features enter as (value - centre) / scale. Without them
            features should be of size one, products included.

        Nothing of it is code, so that it can be stored.

        >>> from alexp.problem.models import ModelClass
        >>> models = ModelClass.crossed(context=["age", "bmi"], action=["dose"], units={"age": (50, 15)})
        >>> list(models.names)
        ['no crossing', 'age*dose', 'bmi*dose', 'age*dose+bmi*dose']
        """
        dictionary = Crossings(context, action, order, units)
        made = dictionary.models(count("max_models", max_models, 2))
        return cls(dictionary, made.groups, made.names, intercept=intercept, log_prior=made.log_prior)

    def with_arms(self, arms: int | Arms | Sequence[str]) -> Self:
        """The same models for other arms, those there were in their places; models without columns of arms stay."""
        if not isinstance(self.dictionary, PerArm):
            return self
        dictionary = self.dictionary.with_arms(arm_names(arms))
        groups = dictionary.in_every_arm(self.dictionary.of_an_arm(self.groups))
        out = type(self)(dictionary, groups, list(self.names), intercept=self.intercept)
        out._scales, out._log_prior, out._families = self._scales, self._log_prior, self._families
        return out


def arm_names(arms: int | Arms | Sequence[str]) -> int | list[str]:
    """How many arms there are, or their names if they have any."""
    if isinstance(arms, str | bytes):
        raise TypeError(f"arms must be a number of arms, their names, or alexp.Arms, got {arms!r}")
    names = getattr(arms, "names", arms)
    return count("arms", names) if not isinstance(names, Sequence) else [str(name) for name in names]
