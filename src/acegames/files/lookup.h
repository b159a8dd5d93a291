/* A policy that acegames %%acegames%% wrote; %%where%%.

   int64_t spent[NAME_CONSTRAINTS + 1], units[NAME_CONSTRAINTS + 1], t, joint, m;
%%open%%   name_begin(spent);
   for (t = 0; t < NAME_HORIZON; t++) {
       joint = name_act(t, state, spent, uniform());  // a random number from [0, 1)
       if (joint < 0) stop();  // not reachable under feasible play
       // play name_action(joint, player) for each player; then see the next state and the costs
       for (m = 0; m < NAME_CONSTRAINTS; m++)
           if (!name_count(m, cost[m], &units[m])) stop();  // or whole units that you know
       name_add(spent, units);
   }

   States, players, actions, joint actions and constraints are numbers from 0, in the order of their
   labels below. Costs are counted in whole units, of which each is worth name_units[m]. No memory
   is allocated, and all arrays are constant. Include this file in one source file. */
#ifndef %%guard%%
#define %%guard%%

#include <stddef.h>
#include <stdint.h>
%%includes%%
#ifndef INT64_C
#define INT64_C(number) number##LL
#endif

#define NAME_HORIZON INT64_C(%%horizon%%)
#define NAME_PLAYERS INT64_C(%%players%%)
#define NAME_STATES INT64_C(%%states%%)
#define NAME_CONSTRAINTS INT64_C(%%constraints%%)
#define NAME_JOINT_ACTIONS INT64_C(%%joint_actions%%)
#define NAME_ENTRIES INT64_C(%%entries%%)
#define NAME_KEYS INT64_C(%%keys%%)
#define NAME_BUDGET_TIMES INT64_C(%%budget_times%%)
#define NAME_NO_BUDGET INT64_C(%%no_budget%%)
#define NAME_LARGEST INT64_C(%%largest%%)
%%data_bytes%%#define NAME_EXACT 0
#define NAME_DOWN 1
#define NAME_UP 2
#define NAME_IGNORED 3
#define NAME_GAME %%game%%
#define NAME_CONCEPT %%concept%%
#define NAME_ACEGAMES "%%acegames%%"

/* Budget of constraint m after the step at time t, in whole units, where NAME_BUDGET_TIMES is not 0:
   name_budget[t % NAME_BUDGET_TIMES * NAME_CONSTRAINTS + m], NAME_NO_BUDGET where there is none. */

static const char *const name_player_labels[] = {
%%player%%};
static const char *const name_state_labels[] = {
%%state%%};
static const char *const name_constraint_labels[] = {
%%constraint%%};
static const char *const name_action_labels[] = {
%%action%%};
/* Where the actions of each player begin in name_action_labels. */
static const int64_t name_action_first[] = {%%action_first%%};
/* The states in which play begins, and how likely. */
#define NAME_STARTS INT64_C(%%starts%%)
static const int64_t name_start[] = {%%start%%};
static const double name_start_probability[] = {%%start_probability%%};
/* What a whole unit of each constraint is worth; which are reservoirs; what is spent at first. */
static const char *const name_units[] = {%%units%%};
static const int64_t name_reservoir[] = {%%reservoir%%};
static const int64_t name_begins[] = {%%begins%%};
/* How a cost counts: in steps, as it is or rounded to them (see name_count). */
static const int64_t name_rule[] = {%%rule%%};
static const double name_step[] = {%%step%%};
static const int64_t name_lowest[] = {%%lowest%%};
static const int64_t name_times[] = {%%times%%};
static const int64_t name_part[] = {%%part%%};

%%arrays%%
/* The box of a state at time t, or -1. */
static inline int64_t name_box(int64_t t, int64_t state)
{
    int64_t low, high;
    if (name_ready() && t >= 0 && t < NAME_HORIZON) {
        for (low = name_time[t], high = name_time[t + 1]; low < high;) {
            int64_t middle = low + (high - low) / 2;
            if (name_state[middle] == state) return middle;
            if (name_state[middle] < state) low = middle + 1; else high = middle;
        }
    }
    return -1;
}

/* The entry of a situation: the time, the number of the state and the whole units spent, one number
   per constraint. It is -1 where the situation is not reachable under feasible play. */
static inline int64_t name_find(int64_t t, int64_t state, const int64_t *spent)
{
    int64_t box = name_box(t, state), low, high, m, k, order;
    for (m = 0; box >= 0 && m < NAME_CONSTRAINTS; m++)
        if (spent[m] < name_least[box * NAME_CONSTRAINTS + m] || spent[m] > name_most[box * NAME_CONSTRAINTS + m]) return -1;
    for (low = box < 0 ? 0 : name_first[box], high = box < 0 ? 0 : name_first[box + 1]; low < high;) {
        int64_t middle = low + (high - low) / 2;
        for (k = 0, order = 0; k < NAME_KEYS && order == 0; k++) {
            int64_t own = spent[name_keys[k]], clip = name_clip[box * NAME_CONSTRAINTS + name_keys[k]];
            order = name_spent[middle * NAME_KEYS + k] - (own < clip ? clip : own);
        }
        if (order == 0) return middle;
        if (order < 0) low = middle + 1; else high = middle;
    }
    return -1;
}

/* The joint action to play, from a number that is drawn uniformly from [0, 1); -1 as name_find.
   The same number gives the joint action that acegames would play. */
static inline int64_t name_act(int64_t t, int64_t state, const int64_t *spent, double uniform)
{
    int64_t entry = name_find(t, state, spent), k, last;
    double sum = 0;
    if (entry < 0) return -1;
    k = name_support[name_answer[entry]];
    last = name_support[name_answer[entry] + 1] - 1;
    for (; k < last; k++) {
        sum += name_probability[k];
        if (uniform < sum) break;
    }
    return name_played[k];
}

/* The probability of a joint action in a situation; 0 where it is not played, -1 as name_find. */
static inline double name_chance(int64_t t, int64_t state, const int64_t *spent, int64_t joint)
{
    int64_t entry = name_find(t, state, spent), k;
    if (entry < 0) return -1;
    for (k = name_support[name_answer[entry]]; k < (int64_t)name_support[name_answer[entry] + 1]; k++)
        if (name_played[k] == joint) return name_probability[k];
    return 0;
}

/* The action of a player in a joint action, by its number and by its label. */
static inline int64_t name_action(int64_t joint, int64_t player)
{
    return name_joint[joint * NAME_PLAYERS + player];
}

static inline const char *name_action_of(int64_t joint, int64_t player)
{
    return name_action_labels[name_action_first[player] + name_action(joint, player)];
}

/* What is spent at the beginning. */
static inline void name_begin(int64_t *spent)
{
    int64_t m;
    for (m = 0; m < NAME_CONSTRAINTS; m++) spent[m] = name_begins[m];
}

/* Add what a step cost, in whole units, one number per constraint; a reservoir is never more than
   full. Returns 0, and nothing has changed, where a number is absurdly large. */
static inline int name_add(int64_t *spent, const int64_t *units)
{
    int64_t m;
    for (m = 0; m < NAME_CONSTRAINTS; m++)
        if (units[m] > NAME_LARGEST || units[m] < -NAME_LARGEST || spent[m] > NAME_LARGEST || spent[m] < -NAME_LARGEST) return 0;
    for (m = 0; m < NAME_CONSTRAINTS; m++) {
        spent[m] += units[m];
        if (name_reservoir[m] && spent[m] < 0) spent[m] = 0;
    }
    return 1;
}

/* Count a measured cost: the whole units that it counts as. Returns 0 where it counts as none: it is
   no multiple of the unit, or not a number. A multiple is recognised within the precision of a
   double; costs that are known as whole units need not be counted. */
static inline int name_count(int64_t constraint, double cost, int64_t *units)
{
    double steps = cost / name_step[constraint], rest, close;
    int64_t whole, rule = name_rule[constraint];
    if (rule == NAME_IGNORED) { *units = 0; return cost == cost; }
    if (!(steps > -1e14 && steps < 1e14)) return 0;
    whole = (int64_t)steps;
    if ((double)whole > steps) whole--;
    rest = steps - (double)whole;
    close = 1e-15 * (steps < 0 ? -steps : steps);
    if (1 - rest <= close) { whole++; rest = 0; }
    if (rest <= close) rest = 0;
    if (rule == NAME_EXACT && rest > 0) return 0;
    if (rule == NAME_UP && rest > 0) whole++;
    if (whole < name_lowest[constraint]) whole = name_lowest[constraint];
    if (whole > NAME_LARGEST / name_times[constraint] || whole < -NAME_LARGEST / name_times[constraint]) return 0;
    if (whole * name_times[constraint] % name_part[constraint] != 0) return 0;
    *units = whole * name_times[constraint] / name_part[constraint];
    return 1;
}

#endif
